// Users of one LTE cell in ns-3.
//
//   users 1 ... N -- cell (5 MHz) -- EPC -- host
//
// The users 2 to N have more to send (up=1) or to get (up=0) than their share. User 1 has packets of `bytes` (IP) each `interval`
// microseconds. Printed are user 1's goodput in IP packets and the delay of its packets from host to host, and of the cell the size of the
// largest block and the share of the blocks that were not read, first (rv0) and later transmissions.
// Usage: lte KEY=VALUE... with the keys below; prints a line for each seed.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

static std::map<std::string, std::string> keys = {
    {"users", "1"},        {"up", "0"},     {"seed", "1"},       {"seeds", "1"},      {"warm_up", "2"},   {"duration", "22"},
    {"interval", "20300"}, {"bytes", "200"}, {"load", "2500"},   {"distance", "100"}, {"errors", "0"},    {"scheduler", "ns3::PfFfMacScheduler"},
    {"buffer", "200000"},
};

static double Number(const std::string& key) { return std::atof(keys.at(key).c_str()); }

struct Run
{
    std::vector<double> delays; // ms
    uint64_t bytes = 0;
    uint32_t block = 0;
    uint64_t sent[4] = {}, failed[4] = {};
};

static Run run;

static bool IsCounted()
{
    const double now = Simulator::Now().GetSeconds();
    return now >= Number("warm_up") && now < Number("duration");
}

static void Received(Ptr<const Packet> packet)
{
    if (!IsCounted())
        return;
    SeqTsHeader header;
    packet->Copy()->RemoveHeader(header);
    run.bytes += packet->GetSize() + 28;
    run.delays.push_back((Simulator::Now() - header.GetTs()).GetSeconds() * 1e3);
}

static void DlScheduled(DlSchedulingCallbackInfo info) { run.block = std::max<uint32_t>(run.block, info.sizeTb1); }

static void UlScheduled(uint32_t, uint32_t, uint16_t, uint8_t, uint16_t size, uint8_t) { run.block = std::max<uint32_t>(run.block, size); }

static void Block(PhyReceptionStatParameters block)
{
    if (!IsCounted())
        return;
    const auto rv = std::min<uint8_t>(block.m_rv, 3);
    run.sent[rv]++;
    run.failed[rv] += block.m_correctness == 0;
}

static double Quantile(std::vector<double> values, double share)
{
    if (values.empty())
        return 0;
    std::sort(values.begin(), values.end());
    return values[std::min<size_t>(values.size() - 1, static_cast<size_t>(share * values.size()))];
}

static void Send(Ptr<Node> from, Ipv4Address to, uint16_t port, uint32_t ipBytes, double intervalUs, double start)
{
    UdpClientHelper client(to, port);
    client.SetAttribute("Interval", TimeValue(NanoSeconds(static_cast<int64_t>(intervalUs * 1e3))));
    client.SetAttribute("PacketSize", UintegerValue(ipBytes - 28));
    client.SetAttribute("MaxPackets", UintegerValue(0xFFFFFFFF));
    auto apps = client.Install(from);
    apps.Start(Seconds(start));
    apps.Stop(Seconds(Number("duration")));
}

static void Simulate(uint32_t seed)
{
    run = Run();
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);
    const auto users = static_cast<uint32_t>(Number("users"));
    const bool up = Number("up") > 0;
    Config::SetDefault("ns3::LteRlcUm::MaxTxBufferSize", UintegerValue(Number("buffer")));
    Config::SetDefault("ns3::LteRlcUm::EnablePdcpDiscarding", BooleanValue(false));
    Config::SetDefault("ns3::LteSpectrumPhy::CtrlErrorModelEnabled", BooleanValue(false));
    Config::SetDefault("ns3::LteSpectrumPhy::DataErrorModelEnabled", BooleanValue(Number("errors") > 0));
    Config::SetDefault("ns3::LteUePhy::EnableUplinkPowerControl", BooleanValue(false));
    Config::SetDefault("ns3::LteUePhy::TxPower", DoubleValue(23));
    auto lte = CreateObject<LteHelper>();
    auto epc = CreateObject<PointToPointEpcHelper>();
    lte->SetEpcHelper(epc);
    lte->SetSchedulerType(keys.at("scheduler"));
    NodeContainer enb(1), ue(users), host(1);
    InternetStackHelper internet;
    internet.Install(host);
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", DataRateValue(DataRate("100Gb/s")));
    wire.SetDeviceAttribute("Mtu", UintegerValue(1500));
    wire.SetChannelAttribute("Delay", TimeValue(Seconds(0)));
    auto wired = wire.Install(epc->GetPgwNode(), host.Get(0));
    Ipv4AddressHelper addresses;
    addresses.SetBase("1.0.0.0", "255.0.0.0");
    auto wiredAddresses = addresses.Assign(wired);
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(host.Get(0)->GetObject<Ipv4>())->AddNetworkRouteTo(Ipv4Address("7.0.0.0"), Ipv4Mask("255.0.0.0"), 1);
    MobilityHelper mobility;
    auto positions = CreateObject<ListPositionAllocator>();
    positions->Add(Vector(0, 0, 0));
    for (uint32_t i = 0; i < users; i++)
        positions->Add(Vector(Number("distance"), 0, 0));
    mobility.SetPositionAllocator(positions);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(enb);
    mobility.Install(ue);
    auto enbDevice = lte->InstallEnbDevice(enb);
    auto ueDevices = lte->InstallUeDevice(ue);
    lte->AssignStreams(enbDevice, 100);
    lte->AssignStreams(ueDevices, 1000);
    internet.Install(ue);
    auto ueAddresses = epc->AssignUeIpv4Address(ueDevices);
    for (uint32_t i = 0; i < users; i++)
        routing.GetStaticRouting(ue.Get(i)->GetObject<Ipv4>())->SetDefaultRoute(epc->GetUeDefaultGatewayAddress(), 1);
    lte->Attach(ueDevices, enbDevice.Get(0));
    auto random = CreateObject<UniformRandomVariable>();
    random->SetStream(7);
    for (uint32_t i = 0; i < users; i++)
    {
        const bool isFirst = i == 0;
        const uint16_t port = 5000 + i;
        auto receiver = up ? host.Get(0) : ue.Get(i);
        UdpServerHelper server(port);
        auto apps = server.Install(receiver);
        if (isFirst)
            apps.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
        const double start = 1 + random->GetValue(0, 0.1);
        const double interval = isFirst ? Number("interval") : 1500 * 8 * 1e3 / Number("load");
        const auto bytes = isFirst ? static_cast<uint32_t>(Number("bytes")) : 1500;
        Send(up ? ue.Get(i) : host.Get(0), up ? wiredAddresses.GetAddress(1) : ueAddresses.GetAddress(i), port, bytes, interval, start);
    }
    if (up)
    {
        Config::ConnectWithoutContext("/NodeList/*/DeviceList/*/ComponentCarrierMap/*/LteEnbMac/UlScheduling", MakeCallback(&UlScheduled));
        Config::ConnectWithoutContext("/NodeList/*/DeviceList/*/ComponentCarrierMap/*/LteEnbPhy/UlSpectrumPhy/UlPhyReception", MakeCallback(&Block));
    }
    else
    {
        Config::ConnectWithoutContext("/NodeList/*/DeviceList/*/ComponentCarrierMap/*/LteEnbMac/DlScheduling", MakeCallback(&DlScheduled));
        Config::ConnectWithoutContext("/NodeList/*/DeviceList/*/ComponentCarrierMapUe/*/LteUePhy/DlSpectrumPhy/DlPhyReception", MakeCallback(&Block));
    }
    Simulator::Stop(Seconds(Number("duration")));
    Simulator::Run();
    const double seconds = Number("duration") - Number("warm_up");
    std::cout << "seed=" << seed << " goodput=" << run.bytes * 8 / seconds / 1e6 << " n=" << run.delays.size() << " p0=" << Quantile(run.delays, 0)
              << " p50=" << Quantile(run.delays, 0.5) << " p99=" << Quantile(run.delays, 0.99) << " p100=" << Quantile(run.delays, 1)
              << " block=" << run.block;
    for (int rv = 0; rv < 4; rv++)
        if (run.sent[rv] > 0)
            std::cout << " rv" << rv << "=" << double(run.failed[rv]) / run.sent[rv];
    std::cout << std::endl;
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
