#include "experiments/explain/rank_scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/counted.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "experiments/explain/quantities.hpp"
#include "gpu/model/cost_model.hpp"

namespace attest {
namespace {

constexpr std::string_view caveat = "a model, within 5 % of two H200s from 4,096 tokens a GPU on";

RankRow row_of(const RankScaling& scaling, const GpuModel& gpu, const RankQuestion& question,
               std::int64_t ranks) {
  RankRow row{.ranks = ranks, .link = question.link};
  if (row.link == nullptr) row.link = &slowest_link(gpu, ranks);
  const RankRates rates{.flops_per_s = scaling.flops_per_s,
                        .link_bytes_per_s = row.link->reached_bytes_per_s};
  for (std::size_t i = 0; i < all_distributions.size(); ++i) {
    row.rings[i] = ring_times(scaling.problem, ranks, all_distributions[i], rates);
    row.break_even[i] = break_even_queries(scaling.problem, all_distributions[i], rates);
  }
  row.ulysses = ulysses_times(scaling.problem, ranks, Distribution::contiguous, rates);
  return row;
}

std::string_view name_of_distribution(std::int64_t distribution) {
  const auto fields = plan_fields();
  const auto field = std::ranges::find(fields, &Plan::distribution, &PlanField::member);
  return field->values[static_cast<std::size_t>(distribution - 1)];
}

/// The step that computes longest, of those with an exchange if there are any.
RankStep longest_step(const RankTimes& ring) {
  const auto end = ring.steps.size() > 1 ? ring.steps.end() - 1 : ring.steps.end();
  return *std::max_element(ring.steps.begin(), end, [](const auto& a, const auto& b) {
    return a.computing_s < b.computing_s;
  });
}

std::int64_t queries_a_gpu(const RankScaling& scaling, const RankRow& row) {
  return (scaling.problem.query_len + row.ranks - 1) / row.ranks;
}

std::string who_hides(const RankStep& step) {
  if (step.exchange_s == 0) return "nothing is exchanged";
  if (step.exchange_s <= step.computing_s) return "the exchange hides behind the computing";
  return fmt::format("the computing hides behind the exchange, and waits for {} of it",
                     milliseconds(step.exchange_s - step.computing_s));
}

std::string counted_queries(std::int64_t count) {
  return count == 1 ? "1 query" : fmt::format("{} queries", count);
}

/// `contiguous 535, zigzag 1070, stripe 1070`.
template <typename Text>
std::string by_distribution(const Text& text) {
  std::string to;
  for (std::size_t i = 0; i < all_distributions.size(); ++i) {
    append(to, "{}{} {}", i == 0 ? "" : ", ", name_of_distribution(all_distributions[i]), text(i));
  }
  return to;
}

std::string break_even_text(const RankRow& row) {
  if (!row.break_even[0]) return "not known: steps see different shares of their pairs";
  return by_distribution([&](std::size_t i) {
           return fmt::format("{:.0f}", std::ceil(row.break_even[i].value_or(0)));
         }) +
         " queries of an entry a GPU: from there on the exchange hides";
}

void print_ring(std::string& to, const RankScaling& s) {
  const RankRow& row = s.asked;
  const RankTimes& ring = row.ring(s.plan.distribution);
  const RankStep step = longest_step(ring);
  append(to, "  ring            {}, {}, {} of an entry each\n", counted(row.ranks, "rank"),
         name_of_distribution(s.plan.distribution), counted_queries(queries_a_gpu(s, row)));
  append(to, "    longest step  computing {}, exchange {}: {}\n", milliseconds(step.computing_s),
         milliseconds(step.exchange_s), who_hides(step));
  append(to, "    all steps     {}, efficiency {}; {} if nothing overlapped\n",
         milliseconds(ring.time_s()), percent(ring.efficiency()),
         percent(ring.efficiency_without_overlap()));
  append(to, "    sent          {} by a rank\n", bytes(std::ranges::max(ring.sent_bytes)));
  append(to, "    break-even    {}\n", break_even_text(row));
  append(to, "    balance       {}",
         by_distribution([&](std::size_t i) { return percent(row.rings[i].balance()); }));
  append(to, ": efficiency if links were free\n");
}

void print_ulysses(std::string& to, const RankScaling& s) {
  const RankRow& row = s.asked;
  append(to, "  Ulysses         computing {}, two all-to-alls {}, efficiency {}\n",
         milliseconds(row.ulysses.computing_s()), milliseconds(row.ulysses.exchange_s()),
         percent(row.ulysses.efficiency()));
  append(to, "    sent          {} by a rank; of more ranks than {} some have no work\n",
         bytes(std::ranges::max(row.ulysses.sent_bytes)), counted(s.problem.kv_heads, "kv head"));
}

void print_table(std::string& to, const RankScaling& s) {
  append(to, "  efficiency at this length\n  {:>6}  {:>10}  {:<14}  {:>10}  {:>8}  {:>8}  {:>8}\n",
         "GPUs", "each", "link", "contiguous", "zigzag", "stripe", "Ulysses");
  for (const RankRow& row : s.rows) {
    append(to, "  {:>6}  {:>10}  {:<14}  {:>10}  {:>8}  {:>8}  {:>8}\n", row.ranks,
           queries_a_gpu(s, row), row.link->name, percent(row.rings[0].efficiency()),
           percent(row.rings[1].efficiency()), percent(row.rings[2].efficiency()),
           percent(row.ulysses.efficiency()));
  }
}

Json times_json(const RankTimes& times) {
  return {{"time_s", times.time_s()},
          {"computing_s", times.computing_s()},
          {"exchange_s", times.exchange_s()},
          {"efficiency", times.efficiency()},
          {"efficiency_without_overlap", times.efficiency_without_overlap()},
          {"balance", times.balance()},
          {"sent_bytes", std::ranges::max(times.sent_bytes)}};
}

Json row_json(const RankScaling& s, const RankRow& row) {
  Json json{{"ranks", row.ranks},
            {"queries_a_rank", queries_a_gpu(s, row)},
            {"link", row.link->name},
            {"link_bytes_per_s", row.link->reached_bytes_per_s},
            {"ulysses", times_json(row.ulysses)}};
  for (std::size_t i = 0; i < all_distributions.size(); ++i) {
    const RankStep step = longest_step(row.rings[i]);
    Json& ring = json["ring"][std::string(name_of_distribution(all_distributions[i]))];
    ring = times_json(row.rings[i]);
    ring["longest_step"] = {{"computing_s", step.computing_s}, {"exchange_s", step.exchange_s}};
    ring["break_even_queries"] = row.break_even[i] ? Json(*row.break_even[i]) : Json(nullptr);
  }
  return json;
}

}  // namespace

RankScaling rank_scaling(const Problem& problem, const Plan& plan, const GpuModel& gpu,
                         const RankQuestion& question) {
  constexpr std::int64_t most_ranks = 4096;
  if (plan.ranks > most_ranks) {
    throw InvalidInput(
        fmt::format("plan field 'ranks' is {}; allowed by the model of ranks: 1 to {}", plan.ranks,
                    most_ranks));
  }
  RankScaling scaling{.problem = problem,
                      .plan = plan,
                      .flops_per_s = question.flops_per_s,
                      .is_rate_given = question.flops_per_s > 0,
                      .why_not_known = why_no_rank_model(problem)};
  if (plan.distribution == 0) scaling.plan.distribution = Distribution::contiguous;
  if (!scaling.is_rate_given) scaling.flops_per_s = attention_flops_per_s(gpu, problem);
  if (scaling.why_not_known.empty() && compulsory_traffic(problem).total() / gpu.dram_bytes_per_s >
                                           forward_flops(problem) / scaling.flops_per_s) {
    scaling.why_not_known =
        "memory limits the problem, and the model of ranks is about those that arithmetic limits";
  }
  if (!scaling.why_not_known.empty()) return scaling;
  scaling.asked = row_of(scaling, gpu, question, plan.ranks);
  for (std::int64_t ranks = 2; ranks <= 1024; ranks *= 2) {
    scaling.rows.push_back(row_of(scaling, gpu, question, ranks));
  }
  return scaling;
}

std::string rank_scaling_text(const RankScaling& s) {
  std::string to = fmt::format("\nranks: {}\n", caveat);
  if (!s.why_not_known.empty()) return to + fmt::format("  not known: {}\n", s.why_not_known);
  const LinkModel& link = *s.asked.link;
  append(
      to, "  computing       {:.4g} TFLOP/s a GPU{}\n", s.flops_per_s / 1e12,
      s.is_rate_given ? "" : ", the peak of its element type; --rate says what a kernel reaches");
  append(to, "  link            {}: {:.4g} of {:.4g} GB/s a direction ({})\n", link.title,
         link.reached_bytes_per_s / 1e9, link.bytes_per_s / 1e9, link.source);
  print_ring(to, s);
  print_ulysses(to, s);
  print_table(to, s);
  return to;
}

Json rank_scaling_json(const RankScaling& s) {
  if (!s.why_not_known.empty()) return {{"not_known", s.why_not_known}};
  Json json{{"caveat", caveat}, {"flops_per_s", s.flops_per_s}, {"asked", row_json(s, s.asked)}};
  for (const RankRow& row : s.rows) json["rows"].push_back(row_json(s, row));
  return json;
}

}  // namespace attest
