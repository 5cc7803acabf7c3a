// Stations and an access point of 802.11n in ns-3, all within reach of each other.
//
//   station 1 ... station N -- air (5 GHz, 20 MHz, MCS 7: 65 Mb/s) -- access point
//   probe station ------------/
//
// N stations offer more than the air takes, in IP packets of 1500 B to the access point. A probe of 200 B leaves each 20 ms, from a
// station of its own (up=1) or from the access point to that station (down=1), and its delay is counted from the device's queue to the
// far device. The access delay of the N stations goes from the last packet of a transmission to the first of the next.
// Usage: wifi KEY=VALUE... with the keys below; prints a line for each seed.

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

static std::map<std::string, std::string> keys = {
    {"stations", "1"}, {"ampdu", "65535"}, {"seed", "1"},      {"seeds", "1"},   {"warm_up", "2"},  {"duration", "12"},
    {"up", "0"},       {"down", "0"},      {"interval", "20"}, {"bytes", "200"}, {"priority", "0"}, {"retries", "7"},
    {"load", "1.3"},   {"slow", "0"},      {"download", "0"},
};

static double Number(const std::string& key) { return std::atof(keys.at(key).c_str()); }

struct Run
{
    std::map<uint64_t, Time> sent;
    std::map<uint64_t, Time> sentDown;
    std::vector<double> up, down; // ms
    std::vector<double> access;   // ms
    std::map<Mac48Address, Time> last;
    uint64_t bytes = 0;
    std::map<Mac48Address, uint64_t> from;
};

static Run run;

// A node keeps no reference to its sockets.
static std::vector<Ptr<Socket>> sockets;

static bool IsCounted()
{
    const double now = Simulator::Now().GetSeconds();
    return now >= Number("warm_up") && now < Number("duration");
}

static void Sent(Ptr<const Packet> packet) { run.sent[packet->GetUid()] = Simulator::Now(); }

static void ReceivedAtAp(Ptr<Socket> socket)
{
    Address from;
    while (auto packet = socket->RecvFrom(from))
    {
        if (!IsCounted())
            continue;
        if (packet->GetSize() > 1000)
        {
            run.bytes += packet->GetSize();
            const auto station = Mac48Address::ConvertFrom(PacketSocketAddress::ConvertFrom(from).GetPhysicalAddress());
            run.from[station] += packet->GetSize();
            // Packets of 1500 B come 192 us after each other in an aggregate, and 315 us in two transmissions.
            auto& last = run.last[station];
            const auto gap = Simulator::Now() - last;
            if (last.IsStrictlyPositive() && gap > MicroSeconds(250))
                run.access.push_back(gap.GetSeconds() * 1e3);
            last = Simulator::Now();
        }
        else if (run.sent.count(packet->GetUid()))
            run.up.push_back((Simulator::Now() - run.sent[packet->GetUid()]).GetSeconds() * 1e3);
    }
}

static void ReceivedAtStation(Ptr<Socket> socket)
{
    Address from;
    while (auto packet = socket->RecvFrom(from))
    {
        if (!IsCounted())
            continue;
        if (packet->GetSize() > 1000)
            run.bytes += packet->GetSize();
        else if (run.sent.count(packet->GetUid()))
            run.down.push_back((Simulator::Now() - run.sent[packet->GetUid()]).GetSeconds() * 1e3);
    }
}

static double Quantile(std::vector<double> values, double share)
{
    if (values.empty())
        return 0;
    std::sort(values.begin(), values.end());
    return values[std::min<size_t>(values.size() - 1, static_cast<size_t>(share * values.size()))];
}

static void Listen(Ptr<Node> node, Ptr<NetDevice> device, uint16_t protocol, Callback<void, Ptr<Socket>> callback)
{
    auto socket = Socket::CreateSocket(node, PacketSocketFactory::GetTypeId());
    PacketSocketAddress local;
    local.SetSingleDevice(device->GetIfIndex());
    local.SetProtocol(protocol);
    socket->Bind(local);
    socket->SetRecvCallback(callback);
    sockets.push_back(socket);
}

static void Send(Ptr<Node> node, Ptr<NetDevice> from, Ptr<NetDevice> to, uint32_t bytes, double intervalMs, double start, int priority)
{
    PacketSocketAddress remote;
    remote.SetSingleDevice(from->GetIfIndex());
    remote.SetPhysicalAddress(to->GetAddress());
    remote.SetProtocol(1);
    auto client = CreateObject<PacketSocketClient>();
    client->SetAttribute("PacketSize", UintegerValue(bytes));
    client->SetAttribute("MaxPackets", UintegerValue(0));
    client->SetAttribute("Interval", TimeValue(MicroSeconds(static_cast<int64_t>(intervalMs * 1e3))));
    client->SetAttribute("Priority", UintegerValue(priority));
    client->SetRemote(remote);
    node->AddApplication(client);
    client->SetStartTime(Seconds(start));
    client->SetStopTime(Seconds(Number("duration")));
}

static void Simulate(uint32_t seed)
{
    run = Run();
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);
    const auto stations = static_cast<uint32_t>(Number("stations"));
    NodeContainer ap(1), sta(stations + 1);
    YansWifiChannelHelper channel = YansWifiChannelHelper::Default();
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    phy.Set("ChannelSettings", StringValue("{36, 20, BAND_5GHZ, 0}"));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211n);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("HtMcs7"), "ControlMode",
                                 StringValue("OfdmRate24Mbps"));
    Config::SetDefault("ns3::QosTxop::UseExplicitBarAfterMissedBlockAck", BooleanValue(false));
    Config::SetDefault("ns3::WifiMac::FrameRetryLimit", UintegerValue(Number("retries")));
    // The limit is that of frames in aggregates, too.
    Config::SetDefault("ns3::WifiRemoteStationManager::IncrementRetryCountUnderBa", BooleanValue(true));
    // No packet is too old.
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(1000)));
    WifiMacHelper mac;
    const auto ampdu = static_cast<uint32_t>(Number("ampdu"));
    mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(Ssid("x")), "BE_MaxAmpduSize", UintegerValue(ampdu), "VO_MaxAmpduSize", UintegerValue(0));
    auto staDevices = wifi.Install(phy, mac, sta);
    mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(Ssid("x")), "BE_MaxAmpduSize", UintegerValue(ampdu), "VO_MaxAmpduSize", UintegerValue(0),
                "BeaconInterval", TimeValue(MicroSeconds(102400)));
    auto apDevice = wifi.Install(phy, mac, ap);
    MobilityHelper mobility;
    auto positions = CreateObject<ListPositionAllocator>();
    positions->Add(Vector(0, 0, 0));
    for (uint32_t i = 0; i <= stations; i++)
        positions->Add(Vector(1, 0.001 * i, 0));
    mobility.SetPositionAllocator(positions);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(ap);
    mobility.Install(sta);
    PacketSocketHelper packetSocket;
    packetSocket.Install(ap);
    packetSocket.Install(sta);
    WifiHelper::AssignStreams(apDevice, 100);
    WifiHelper::AssignStreams(staDevices, 1000);
    auto random = CreateObject<UniformRandomVariable>();
    random->SetStream(7);
    // What each station offers: more than its share of 65 Mb/s.
    const double interval = 1500 * 8 / (65e3 * Number("load") / stations);
    const bool downloads = Number("download") > 0;
    for (uint32_t i = 0; i < stations; i++)
    {
        const double start = 1 + random->GetValue(0, 0.1);
        if (downloads)
            Send(ap.Get(0), apDevice.Get(0), staDevices.Get(i), 1500, interval, start, 0);
        else
            Send(sta.Get(i), staDevices.Get(i), apDevice.Get(0), 1500, interval, start, 0);
    }
    const auto bytes = static_cast<uint32_t>(Number("bytes"));
    const auto priority = static_cast<int>(Number("priority"));
    if (Number("up") > 0)
        Send(sta.Get(stations), staDevices.Get(stations), apDevice.Get(0), bytes, Number("interval"), 1 + random->GetValue(0, 0.1), priority);
    if (Number("down") > 0)
        Send(ap.Get(0), apDevice.Get(0), staDevices.Get(stations), bytes, Number("interval"), 1 + random->GetValue(0, 0.1), priority);
    Listen(ap.Get(0), apDevice.Get(0), 1, MakeCallback(&ReceivedAtAp));
    for (uint32_t i = 0; i <= stations; i++)
        Listen(sta.Get(i), staDevices.Get(i), 1, MakeCallback(&ReceivedAtStation));
    DynamicCast<WifiNetDevice>(staDevices.Get(stations))->GetMac()->TraceConnectWithoutContext("MacTx", MakeCallback(&Sent));
    DynamicCast<WifiNetDevice>(apDevice.Get(0))->GetMac()->TraceConnectWithoutContext("MacTx", MakeCallback(&Sent));
    Simulator::Stop(Seconds(Number("duration")));
    Simulator::Run();
    const double seconds = Number("duration") - Number("warm_up");
    std::cout << "seed=" << seed << " goodput=" << run.bytes * 8 / seconds / 1e6;
    if (!run.up.empty())
        std::cout << " up_n=" << run.up.size() << " up_p50=" << Quantile(run.up, 0.5) << " up_p99=" << Quantile(run.up, 0.99);
    if (!run.down.empty())
        std::cout << " down_n=" << run.down.size() << " down_p50=" << Quantile(run.down, 0.5) << " down_p99=" << Quantile(run.down, 0.99);
    if (!run.access.empty())
        std::cout << " access_n=" << run.access.size() << " access_p99=" << Quantile(run.access, 0.99);
    if (run.from.size() > 1)
    {
        uint64_t least = UINT64_MAX, most = 0;
        for (auto& [who, n] : run.from)
            least = std::min(least, n), most = std::max(most, n);
        std::cout << " least=" << least * 8 / seconds / 1e6 << " most=" << most * 8 / seconds / 1e6;
    }
    std::cout << std::endl;
    sockets.clear();
    Simulator::Destroy();
}

int main(int argc, char* argv[])
{
    for (int i = 1; i < argc; i++)
    {
        const std::string word = argv[i];
        const auto equals = word.find('=');
        if (equals == std::string::npos || !keys.count(word.substr(0, equals)))
        {
            std::cerr << word << ": expected KEY=VALUE\n";
            return 2;
        }
        keys[word.substr(0, equals)] = word.substr(equals + 1);
    }
    const auto first = static_cast<uint32_t>(Number("seed"));
    for (uint32_t seed = first; seed < first + static_cast<uint32_t>(Number("seeds")); seed++)
        Simulate(seed);
    return 0;
}
