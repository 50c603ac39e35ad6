// The work of compare_simgrid.py in SimGrid: one actor a rank, or a flow.
//
//   simgrid_workloads FILE --cfg=network/model:CM02 --cfg=network/crosstraffic:0 ...
//
// FILE, which compare_simgrid.py writes, says what there is and what is sent, one thing a line; numbers are in SI units,
// hosts and links count from 0:
//
//   star HOSTS BANDWIDTH LATENCY     hosts around a switch, each with a link up and a link down; or instead of it
//   hosts HOSTS                      hosts, and
//   link BANDWIDTH LATENCY           a link of one direction, and
//   route SOURCE TARGET LINK ...     the links from one host to another
//
//   rank HOST START                  the next rank is on this host, and begins at START; and then
//   ring ELEMENTS ELEMENT_BYTES      a ring all-reduce of them, or
//   push_pull ELEMENTS ELEMENT_BYTES every rank but the last sends a buffer to the last, and then gets it back; or
//   flow START SOURCE TARGET BYTES   a flow between two hosts, any number of them
//
// Prints one JSON object: the time when the last actor ended, how many messages were sent, seconds of CPU spent before
// and in the simulation, and for flows how long each took.

#include <simgrid/s4u.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace sg = simgrid::s4u;

struct Flow {
  double start;
  std::size_t source;
  std::size_t target;
  std::uint64_t bytes;
};

struct Rank {
  sg::Host* host;
  double start;
};

struct Buffer {
  std::uint64_t elements;
  std::uint64_t element_bytes;

  // The buffer is cut into chunks of whole elements, of which the first ones hold one more.
  std::uint64_t chunk_bytes(std::size_t chunk, std::size_t chunks) const
  {
    return (elements / chunks + (chunk < elements % chunks ? 1 : 0)) * element_bytes;
  }
};

struct Work {
  std::vector<sg::Host*> hosts;
  std::vector<sg::Link*> links;
  std::vector<Rank> ranks;
  std::vector<Flow> flows;
  std::string collective;
  Buffer buffer{0, 1};
};

static char payload; // what messages carry in SimGrid's own memory

static double cpu_seconds()
{
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

static void add_hosts(Work& work, sg::NetZone* zone, std::size_t count)
{
  for (std::size_t number = 0; number < count; number++)
    work.hosts.push_back(zone->create_host("host" + std::to_string(number), 1e9));
}

static sg::Link* add_link(Work& work, sg::NetZone* zone, double bandwidth, double latency)
{
  sg::Link* link = zone->create_link("link" + std::to_string(work.links.size()), bandwidth)->set_latency(latency);
  link->seal();
  work.links.push_back(link);
  return link;
}

static sg::NetZone* make_star(Work& work, std::istringstream& line)
{
  std::size_t count = 0;
  double bandwidth = 0;
  double latency = 0;
  line >> count >> bandwidth >> latency;
  sg::NetZone* zone = sg::create_star_zone("star");
  add_hosts(work, zone, count);
  for (sg::Host* host : work.hosts) {
    const std::vector<sg::LinkInRoute> up{sg::LinkInRoute(add_link(work, zone, bandwidth, latency))};
    const std::vector<sg::LinkInRoute> down{sg::LinkInRoute(add_link(work, zone, bandwidth, latency))};
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, up, false);
    zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, down, false);
  }
  return zone;
}

static void add_route(const Work& work, sg::NetZone* zone, std::istringstream& line)
{
  std::size_t source = 0;
  std::size_t target = 0;
  std::size_t link = 0;
  line >> source >> target;
  std::vector<sg::LinkInRoute> route;
  while (line >> link)
    route.emplace_back(work.links.at(link));
  zone->add_route(work.hosts.at(source)->get_netpoint(), work.hosts.at(target)->get_netpoint(), nullptr, nullptr, route,
                  false);
}

static Work read_work(const std::string& path)
{
  std::ifstream file(path);
  if (!file) {
    std::cerr << "cannot read " << path << "\n";
    std::exit(2);
  }
  Work work;
  sg::NetZone* zone = nullptr;
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream line(text);
    std::string what;
    line >> what;
    if (what == "topology") {
      continue; // the same for simnet
    } else if (what == "star") {
      zone = make_star(work, line);
    } else if (what == "hosts") {
      std::size_t count = 0;
      line >> count;
      zone = sg::create_full_zone("routes");
      add_hosts(work, zone, count);
    } else if (what == "link") {
      double bandwidth = 0;
      double latency = 0;
      line >> bandwidth >> latency;
      add_link(work, zone, bandwidth, latency);
    } else if (what == "route") {
      add_route(work, zone, line);
    } else if (what == "rank") {
      std::size_t host = 0;
      double start = 0;
      line >> host >> start;
      work.ranks.push_back({work.hosts.at(host), start});
    } else if (what == "ring" || what == "push_pull") {
      work.collective = what;
      line >> work.buffer.elements >> work.buffer.element_bytes;
    } else if (what == "flow") {
      Flow flow{};
      line >> flow.start >> flow.source >> flow.target >> flow.bytes;
      work.flows.push_back(flow);
    } else {
      std::cerr << path << ": what is `" << what << "`?\n";
      std::exit(2);
    }
  }
  if (zone != nullptr)
    zone->seal();
  return work;
}

// In step k rank r passes chunk r - k on to rank r + 1: N - 1 steps that add, then N - 1 that copy.
static void ring_rank(std::size_t rank, double start, std::size_t ranks, const Buffer& buffer)
{
  sg::this_actor::sleep_until(start);
  sg::Mailbox* own  = sg::Mailbox::by_name(std::to_string(rank));
  sg::Mailbox* next = sg::Mailbox::by_name(std::to_string((rank + 1) % ranks));
  std::size_t chunk = rank;
  for (std::size_t step = 0; step < 2 * (ranks - 1); step++) {
    sg::CommPtr sent = next->put_async(&payload, buffer.chunk_bytes(chunk, ranks));
    own->get<char>();
    sent->wait();
    chunk = (chunk + ranks - 1) % ranks;
  }
}

static void worker(std::size_t rank, double start, std::uint64_t bytes)
{
  sg::this_actor::sleep_until(start);
  sg::Mailbox::by_name("server")->put(&payload, bytes);
  sg::Mailbox::by_name(std::to_string(rank))->get<char>();
}

static void server(std::size_t workers, std::uint64_t bytes)
{
  std::vector<sg::CommPtr> transfers;
  std::vector<char*> received(workers, nullptr);
  for (std::size_t rank = 0; rank < workers; rank++)
    transfers.push_back(sg::Mailbox::by_name("server")->get_async<char>(&received[rank]));
  sg::Comm::wait_all(transfers);
  transfers.clear();
  for (std::size_t rank = 0; rank < workers; rank++)
    transfers.push_back(sg::Mailbox::by_name(std::to_string(rank))->put_async(&payload, bytes));
  sg::Comm::wait_all(transfers);
}

static std::size_t start_ring(const Work& work)
{
  const std::size_t ranks = work.ranks.size();
  for (std::size_t rank = 0; rank < ranks; rank++) {
    const auto& [host, start] = work.ranks[rank];
    sg::ActorPtr actor = sg::Actor::create("rank", host, ring_rank, rank, start, ranks, work.buffer);
    // A message sets out when it is sent, also where its receiver does not wait for it yet.
    sg::Mailbox::by_name(std::to_string(rank))->set_receiver(actor);
  }
  return 2 * ranks * (ranks - 1);
}

static std::size_t start_push_pull(const Work& work)
{
  const std::size_t workers = work.ranks.size() - 1;
  const std::uint64_t bytes = work.buffer.chunk_bytes(0, 1);
  for (std::size_t rank = 0; rank < workers; rank++)
    sg::Actor::create("worker", work.ranks[rank].host, worker, rank, work.ranks[rank].start, bytes);
  sg::Actor::create("server", work.ranks[workers].host, server, workers, bytes);
  return 2 * workers;
}

// Makes the actor of a flow when the flow begins, which is cheaper than as many actors that sleep.
static void begin_flows(const Work& work, std::vector<double>& duration)
{
  for (std::size_t number = 0; number < work.flows.size(); number++) {
    const Flow& flow = work.flows[number];
    sg::this_actor::sleep_until(flow.start);
    sg::Host* source = work.hosts.at(flow.source);
    sg::Host* target = work.hosts.at(flow.target);
    sg::Actor::create("flow", source, [&flow, &taken = duration[number], source, target]() {
      sg::Comm::sendto(source, target, flow.bytes);
      taken = sg::Engine::get_clock() - flow.start;
    });
  }
}

int main(int argc, char** argv)
{
  sg::Engine engine(&argc, argv);
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FILE [--cfg=option:value ...]\n";
    return 2;
  }
  const Work work = read_work(argv[1]);
  std::vector<double> duration(work.flows.size(), -1.0);
  std::size_t messages = work.flows.size();
  if (work.collective == "ring")
    messages = start_ring(work);
  else if (work.collective == "push_pull")
    messages = start_push_pull(work);
  else
    sg::Actor::create("begin flows", work.hosts.front(), [&work, &duration]() { begin_flows(work, duration); });

  const double before = cpu_seconds();
  engine.run();
  const double after = cpu_seconds();

  std::printf("{\"simulated_s\": %.17g, \"messages\": %zu, \"prepare_cpu_s\": %.6f, \"simulate_cpu_s\": %.6f, "
              "\"flow_duration_s\": [",
              sg::Engine::get_clock(), messages, before, after - before);
  for (std::size_t number = 0; number < duration.size(); number++)
    std::printf("%s%.12g", number == 0 ? "" : ", ", duration[number]);
  std::printf("]}\n");
  return 0;
}
