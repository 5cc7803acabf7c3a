// The dumbbell in ns-3: bulk TCP connections and UDP streams of constant rate through one bottleneck.
//
//   sender i -- tx i -- A -- wan -- B -- rx i -- receiver i        (rx = 0: the receivers are at B)
//
// Usage: dumbbell KEY=VALUE...; keys and defaults are those of dumbbell.tcl beside this file, and so are the lines that it prints.
//
// What ns-3 counts in its own way: a point-to-point link adds 2 B of PPP to each packet, so that a segment of 512 B takes 554 B on the
// wire and not 552. Its Reno is NewReno (RFC 6582) with limited transmit; there is no older one. The device's queue holds what waits
// beside the packet being sent; the traffic-control layer above it is taken away.

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
    {"seed", "1"}, {"seeds", "1"}, {"duration", "200"}, {"drain", "5"},
    {"tcps", "6"}, {"cc", "newreno"}, {"mss", "512"}, {"rwnd", "16"}, {"iw", "1"}, {"delack", "0"}, {"delack_timer", "0.2"},
    {"tick", "0.5"}, {"min_rto", "1"}, {"limited_transmit", "0"}, {"start", "1"},
    {"wan_rate", "1.5"}, {"wan_delay", "0.05"}, {"queue", "16"},
    {"tx_rate", "10"}, {"tx_delay", "0.001"}, {"tx_step", "0"}, {"rx", "1"}, {"rx_rate", "10"}, {"rx_delay", "0.001"}, {"rx_step", "0"},
    {"voices", "0"}, {"voice_size", "320"}, {"voice_kbps", "64"}, {"sample", "0.1"}, {"hops", "0"},
};

static double Number(const std::string& key) { return std::atof(keys.at(key).c_str()); }
static Time Span(double seconds) { return NanoSeconds(static_cast<uint64_t>(seconds * 1e9 + 0.5)); }
static std::string Megabits(double rate) { return std::to_string(static_cast<uint64_t>(rate * 1e6)) + "bps"; }

struct Run
{
    double area = 0, queueSince = 0;
    uint32_t queued = 0, longest = 0;
    uint64_t dropped = 0, hops = 0, timeouts = 0, received = 0, lost = 0, runs = 0, good = 0, samples = 0;
    double raw = 0, capped = 0;
    std::vector<uint32_t> windows;
    std::map<Ptr<Socket>, uint32_t> next;
};

static Run run;

// Mean queue: the area under the number of waiting packets, within the window.
static void QueueChanged(uint32_t, uint32_t now)
{
    const double at = std::min(Simulator::Now().GetSeconds(), Number("duration"));
    run.area += run.queued * (at - run.queueSince);
    run.queueSince = at;
    run.queued = now;
}

static void Dropped(Ptr<const Packet>)
{
    if (Simulator::Now().GetSeconds() < Number("duration"))
        run.dropped++;
}

static void Arrived(Ptr<const Packet>) { run.hops++; }
static void Window(uint32_t index, uint32_t, uint32_t now) { run.windows[index] = now; }

// A timeout is what puts the congestion state to CA_LOSS; one that follows another without an acknowledgement between is not counted.
static void State(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
{
    if (now == TcpSocketState::CA_LOSS && Simulator::Now().GetSeconds() < Number("duration"))
        run.timeouts++;
}

static void Read(Ptr<const Packet> packet, const Address&)
{
    if (Simulator::Now().GetSeconds() < Number("duration"))
        run.good += packet->GetSize();
}

// A stream's packets carry their number; a gap is a run of missing ones.
static void Heard(Ptr<Socket> socket)
{
    Address from;
    while (Ptr<Packet> packet = socket->RecvFrom(from))
    {
        uint8_t head[4];
        packet->CopyData(head, 4);
        const uint32_t number = (head[0] << 24) | (head[1] << 16) | (head[2] << 8) | head[3];
        uint32_t& next = run.next[socket];
        if (number > next)
        {
            run.lost += number - next;
            run.runs++;
            run.longest = std::max(run.longest, number - next);
        }
        next = number + 1;
        run.received++;
    }
}

static void Speak(Ptr<Socket> socket, uint32_t number, uint32_t size, Time period, Time end)
{
    if (Simulator::Now() >= end)
        return;
    std::vector<uint8_t> payload(size, 0);
    for (int byte = 0; byte < 4; ++byte)
        payload[byte] = static_cast<uint8_t>(number >> (24 - 8 * byte));
    socket->Send(Create<Packet>(payload.data(), size));
    Simulator::Schedule(period, &Speak, socket, number + 1, size, period, end);
}

static void Sample()
{
    const double mss = Number("mss"), rwnd = Number("rwnd");
    for (uint32_t window : run.windows)
    {
        if (window == 0)
            continue;
        run.raw += window / mss;
        run.capped += std::min(window / mss, rwnd);
        run.samples++;
    }
    if (Simulator::Now().GetSeconds() + Number("sample") < Number("duration"))
        Simulator::Schedule(Span(Number("sample")), &Sample);
}

static void Attach(Ptr<Socket> socket, uint32_t index)
{
    socket->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&Window, index));
    socket->TraceConnectWithoutContext("CongState", MakeCallback(&State));
}

static NetDeviceContainer Connect(Ptr<Node> from, Ptr<Node> to, double rate, double delay, uint32_t limit, bool bottleneck)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(Megabits(rate)));
    link.SetChannelAttribute("Delay", TimeValue(Span(delay)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(std::to_string(limit) + "p"));
    NetDeviceContainer ends = link.Install(from, to);
    Ptr<PointToPointNetDevice> near = DynamicCast<PointToPointNetDevice>(ends.Get(0));
    if (bottleneck)
    {
        // Only this way is narrow; the other has room.
        DynamicCast<PointToPointNetDevice>(ends.Get(1))->GetQueue()->SetMaxSize(QueueSize("1000p"));
        near->GetQueue()->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&QueueChanged));
        // Without a queueing discipline the layer above drops what finds the device's queue full.
        from->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", MakeCallback(&Dropped));
    }
    if (Number("hops") > 0)
        for (uint32_t end = 0; end < 2; ++end)
            ends.Get(end)->TraceConnectWithoutContext("MacRx", MakeCallback(&Arrived));
    return ends;
}

static void Configure()
{
    const bool cubic = keys.at("cc") == "cubic";
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(cubic ? TcpCubic::GetTypeId() : TcpNewReno::GetTypeId()));
    if (!cubic)
        Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    const uint32_t mss = Number("mss");
    const uint32_t buffer = mss * Number("rwnd");
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(2 * buffer));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(Number("iw")));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(Number("delack") > 0 ? 2 : 1));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Span(Number("delack_timer"))));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Span(Number("min_rto"))));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(Span(Number("tick"))));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(cubic));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(cubic));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(buffer > 65535));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(Number("limited_transmit") > 0));
}

static void Build()
{
    const uint32_t tcps = Number("tcps"), voices = Number("voices");
    const double duration = Number("duration");
    NodeContainer routers, hosts;
    routers.Create(2);
    InternetStackHelper stack;
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    const auto number = [&addresses](NetDeviceContainer ends) {
        Ipv4InterfaceContainer both = addresses.Assign(ends);
        for (uint32_t end = 0; end < 2; ++end)
        {
            Ptr<TrafficControlLayer> control = ends.Get(end)->GetNode()->GetObject<TrafficControlLayer>();
            if (control && control->GetRootQueueDiscOnDevice(ends.Get(end)))
                TrafficControlHelper().Uninstall(ends.Get(end));
        }
        addresses.NewNetwork();
        return both;
    };
    stack.Install(routers);
    Ipv4InterfaceContainer wan =
        number(Connect(routers.Get(0), routers.Get(1), Number("wan_rate"), Number("wan_delay"), Number("queue"), true));
    Ptr<UniformRandomVariable> random = CreateObject<UniformRandomVariable>();
    random->SetStream(1);
    for (uint32_t i = 0; i < tcps + voices; ++i)
    {
        const double step = i < tcps ? i : 0;
        Ptr<Node> from = CreateObject<Node>();
        stack.Install(from);
        number(Connect(from, routers.Get(0), Number("tx_rate"), Number("tx_delay") + step * Number("tx_step"), 1000, false));
        Ptr<Node> to = routers.Get(1);
        Ipv4Address address = wan.GetAddress(1);
        if (Number("rx") > 0)
        {
            to = CreateObject<Node>();
            stack.Install(to);
            address = number(Connect(routers.Get(1), to, Number("rx_rate"), Number("rx_delay") + step * Number("rx_step"), 1000, false))
                          .GetAddress(1);
        }
        const uint16_t port = 5000 + i;
        const Time start = Span(random->GetValue(0.0, 1.0) * Number("start"));
        if (i < tcps)
        {
            PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
            sink.Install(to).Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Read));
            BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(address, port));
            bulk.SetAttribute("SendSize", UintegerValue(Number("mss")));
            ApplicationContainer app = bulk.Install(from);
            app.Start(start);
            app.Stop(Span(duration));
            run.windows.push_back(0);
            Ptr<BulkSendApplication> sender = DynamicCast<BulkSendApplication>(app.Get(0));
            Simulator::Schedule(start + NanoSeconds(1), [sender, i]() { Attach(sender->GetSocket(), i); });
        }
        else
        {
            Ptr<Socket> sink = Socket::CreateSocket(to, UdpSocketFactory::GetTypeId());
            sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
            sink->SetRecvCallback(MakeCallback(&Heard));
            Ptr<Socket> source = Socket::CreateSocket(from, UdpSocketFactory::GetTypeId());
            source->Connect(InetSocketAddress(address, port));
            const uint32_t size = Number("voice_size");
            const Time period = Span(size * 8 / (Number("voice_kbps") * 1000));
            Simulator::Schedule(start, &Speak, source, 0u, size, period, Span(duration));
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
}

static void Print()
{
    const double duration = Number("duration");
    QueueChanged(0, run.queued);
    std::cout << "seed=" << keys.at("seed");
    if (run.samples > 0)
        std::cout << " capped=" << run.capped / run.samples << " cwnd=" << run.raw / run.samples;
    std::cout << " dropped=" << run.dropped << " goodput=" << run.good * 8 / duration << " hops=" << run.hops;
    if (run.lost + run.received > 0)
        std::cout << " loss=" << static_cast<double>(run.lost) / (run.lost + run.received);
    std::cout << " queue=" << run.area / duration << " run_max=" << run.longest;
    if (run.runs > 0)
        std::cout << " run_mean=" << static_cast<double>(run.lost) / run.runs;
    std::cout << " timeouts=" << run.timeouts << std::endl;
}

int main(int count, char** words)
{
    for (int i = 1; i < count; ++i)
    {
        const std::string word = words[i];
        const size_t split = word.find('=');
        if (split == std::string::npos || keys.find(word.substr(0, split)) == keys.end())
        {
            std::cerr << "unknown: " << word << std::endl;
            return 2;
        }
        keys[word.substr(0, split)] = word.substr(split + 1);
    }
    Configure();
    const uint32_t first = Number("seed"), seeds = Number("seeds");
    for (uint32_t seed = first; seed < first + seeds; ++seed)
    {
        keys["seed"] = std::to_string(seed);
        run = Run();
        RngSeedManager::SetSeed(seed);
        Build();
        if (Number("sample") > 0)
            Simulator::Schedule(Span(Number("sample")), &Sample);
        Simulator::Stop(Span(Number("duration") + Number("drain")));
        Simulator::Run();
        Print();
        Simulator::Destroy();
        Ipv4AddressGenerator::Reset();
    }
    return 0;
}
