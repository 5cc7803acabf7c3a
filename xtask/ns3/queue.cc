// One link with CoDel or FQ-CoDel in ns-3, under a paced UDP stream and a TCP transfer.
//
//   sender -- access (1 Gb/s, 1 ms) -- router -- wan (10 Mb/s, 20 ms) -- receiver
//
// The queue is that of the router towards the receiver. queue.toml beside this file is the same load in ours. Usage: queue KEY=VALUE...
// with the keys below; prints a line for each seed, in the words of crates/sim/examples/figures.rs. The seed draws when the transfer
// begins, within the first second.
//
// What ns-3 counts in its own way: a point-to-point link adds 2 B of PPP to each packet. Its device has a queue of its own behind the
// discipline, here of one packet, the least that it takes: a packet waits there for the one before it, 1.2 ms, after its time in the
// discipline has ended.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

static std::map<std::string, std::string> keys = {
    {"queue", "codel"}, {"seed", "1"}, {"seeds", "1"}, {"warm_up", "10"}, {"duration", "60"}, {"udp_bps", "2000000"},
};

struct Run
{
    std::vector<double> sojourns; // ms, of what was sent
    uint64_t droppedUdp = 0, droppedTcp = 0, sentUdp = 0, goodTcp = 0;
};

static Run run;

static double Number(const std::string& key) { return std::atof(keys.at(key).c_str()); }

static bool IsCounted()
{
    const double now = Simulator::Now().GetSeconds();
    return now >= Number("warm_up") && now < Number("duration");
}

// A packet left the internal queue: to be sent, unless CoDel drops it at once.
static void Sojourned(Time sojourn)
{
    if (IsCounted())
        run.sojourns.push_back(sojourn.GetSeconds() * 1e3);
}

static void CountDrop(Ptr<const QueueDiscItem> item)
{
    const auto ip = DynamicCast<const Ipv4QueueDiscItem>(item);
    const bool isUdp = ip && ip->GetHeader().GetProtocol() == 17;
    (isUdp ? run.droppedUdp : run.droppedTcp)++;
}

static void DroppedBefore(Ptr<const QueueDiscItem> item, const char*)
{
    if (IsCounted())
        CountDrop(item);
}

static void DroppedAfter(Ptr<const QueueDiscItem> item, const char*)
{
    if (!IsCounted())
        return;
    run.sojourns.pop_back();
    CountDrop(item);
}

static void SentUdp(Ptr<const Packet>)
{
    if (IsCounted())
        run.sentUdp++;
}

static void ReadTcp(Ptr<const Packet> packet, const Address&)
{
    if (IsCounted())
        run.goodTcp += packet->GetSize();
}

static void One(uint32_t seed)
{
    run = Run();
    RngSeedManager::SetSeed(seed);
    Ptr<UniformRandomVariable> uniform = CreateObject<UniformRandomVariable>();

    NodeContainer nodes;
    nodes.Create(3);
    PointToPointHelper access, wan;
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    access.SetChannelAttribute("Delay", StringValue("1ms"));
    wan.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    wan.SetChannelAttribute("Delay", StringValue("20ms"));
    wan.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize("1p")));
    NetDeviceContainer near = access.Install(nodes.Get(0), nodes.Get(1));
    NetDeviceContainer far = wan.Install(nodes.Get(1), nodes.Get(2));
    InternetStackHelper().Install(nodes);

    TrafficControlHelper discipline;
    discipline.SetRootQueueDisc(keys.at("queue") == "codel" ? "ns3::CoDelQueueDisc" : "ns3::FqCoDelQueueDisc");
    Ptr<QueueDisc> queue = discipline.Install(far.Get(0)).Get(0);
    queue->TraceConnectWithoutContext("SojournTime", MakeCallback(&Sojourned));
    queue->TraceConnectWithoutContext("DropBeforeEnqueue", MakeCallback(&DroppedBefore));
    queue->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&DroppedAfter));

    Ipv4AddressHelper addresses("10.0.1.0", "255.255.255.0");
    addresses.Assign(near);
    addresses.SetBase("10.0.2.0", "255.255.255.0");
    const Ipv4Address receiver = addresses.Assign(far).GetAddress(1);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    const InetSocketAddress tcp(receiver, 5001), udp(receiver, 5002);
    PacketSinkHelper tcpSink("ns3::TcpSocketFactory", tcp), udpSink("ns3::UdpSocketFactory", udp);
    ApplicationContainer sinks = tcpSink.Install(nodes.Get(2));
    sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&ReadTcp));
    sinks.Add(udpSink.Install(nodes.Get(2)));
    sinks.Start(Seconds(0));

    BulkSendHelper bulk("ns3::TcpSocketFactory", tcp);
    ApplicationContainer transfer = bulk.Install(nodes.Get(0));
    transfer.Start(Seconds(uniform->GetValue(0, 1)));
    OnOffHelper stream("ns3::UdpSocketFactory", udp);
    stream.SetConstantRate(DataRate(static_cast<uint64_t>(Number("udp_bps"))), 1000);
    ApplicationContainer paced = stream.Install(nodes.Get(0));
    paced.Get(0)->TraceConnectWithoutContext("Tx", MakeCallback(&SentUdp));
    paced.Start(Seconds(0));

    Simulator::Stop(Seconds(Number("duration")));
    Simulator::Run();
    Simulator::Destroy();

    std::sort(run.sojourns.begin(), run.sojourns.end());
    double sum = 0;
    for (double sojourn : run.sojourns)
        sum += sojourn;
    const size_t count = run.sojourns.size();
    const double window = Number("duration") - Number("warm_up");
    // Nearest rank, as ours.
    std::cout << "seed=" << seed << " wait_mean=" << sum / count << " wait_p95=" << run.sojourns[(count * 95 + 99) / 100 - 1]
              << " dropped=" << run.droppedTcp + run.droppedUdp << " loss=" << static_cast<double>(run.droppedUdp) / run.sentUdp
              << " goodput=" << run.goodTcp * 8 / window << std::endl;
}

int main(int argc, char** argv)
{
    for (int i = 1; i < argc; i++) {
        const std::string pair = argv[i];
        const size_t at = pair.find('=');
        if (at == std::string::npos || keys.count(pair.substr(0, at)) == 0) {
            std::cerr << pair << ": expected KEY=VALUE with a key of queue.cc" << std::endl;
            return 2;
        }
        keys[pair.substr(0, at)] = pair.substr(at + 1);
    }
    // RFC 6582 and RFC 6675, without PRR; ten segments at first (RFC 6928); 1500 B in a full packet with timestamps.
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::TcpNewReno")));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TypeId::LookupByName("ns3::TcpClassicRecovery")));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    const uint32_t first = static_cast<uint32_t>(Number("seed"));
    for (uint32_t seed = first; seed < first + static_cast<uint32_t>(Number("seeds")); seed++)
        One(seed);
    return 0;
}
