#include "verify/judge/variation.hpp"

#include <algorithm>

#include "core/inputs/random.hpp"

namespace attest {
namespace {

const Inputs& inputs_of(Run& run, const OtherCall& call, std::optional<Inputs>& made) {
  if (!call.inputs) return run.inputs();
  return made.emplace(call.inputs(run.inputs()));
}

/// Rows that one output of the other call owes; a row that is not compared holds 0.
template <typename T>
Tensor<T> owed_rows(const Tensor<T>& from, const Shape& shape, OutputIndex output,
                    const RowOwed& row_owed) {
  Tensor<T> to(shape);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        const auto row = row_owed(output, {b, h, n});
        if (row) std::ranges::copy(from.row(row->b, row->h, row->n), to.row(b, h, n).begin());
      }
    }
  }
  return to;
}

Shape shape_of(const Variation& variation, OutputIndex output) {
  const Problem& p = variation.call.the_case.problem;
  return (*p.operation)[output].shape(p);
}

/// The bounds of what the rows of the other call owe.
Answer owed(const Variation& variation, const Answer& of_case) {
  if (!variation.row_owed) return of_case;
  Answer answer;
  for (std::size_t i = 0; i < of_case.size(); ++i) {
    const OutputIndex output{i};
    answer[output].bound =
        owed_rows(of_case[output].bound, shape_of(variation, output), output, variation.row_owed);
  }
  return answer;
}

Agreement agreement_of(Run& run, const VariationLaw& law, const Variation& variation,
                       const Inputs& inputs, const Inputs* of_reference) {
  if (law.same_bits_but_for && claims_same_bits(run, *law.same_bits_but_for)) return {};
  const auto answer_to = [&](const OtherCall& call, const Inputs& its_inputs) {
    return run.answer_to(call.the_case.problem, call.the_case.plan, its_inputs);
  };
  const Answer want =
      owed(variation,
           variation.reference ? answer_to(*variation.reference, *of_reference) : run.answer());
  return within_bounds(variation.has_own_bound ? answer_to(variation.call, inputs) : want, want);
}

Check check(Run& run, const VariationLaw& law, const Variation& variation) {
  std::optional<Inputs> made, made_for_reference;
  const Outputs* of_case = nullptr;
  const Inputs* of_reference = nullptr;
  Outputs launched;
  if (variation.reference) {
    of_reference = &inputs_of(run, *variation.reference, made_for_reference);
    launched =
        run.launch(variation.reference->the_case, *of_reference, variation.reference->options)
            .outputs;
    of_case = &launched;
  } else {
    of_case = &run.base().outputs;
  }
  const Inputs& inputs = inputs_of(run, variation.call, made);
  const Launch launch = run.launch(variation.call.the_case, inputs, variation.call.options);
  const MemoryReport& memory = launch.memory;
  for (const auto* sentences :
       {&memory.damaged_guards, &memory.unwritten_outputs, &memory.modified_inputs}) {
    if (!sentences->empty()) return Check::failed(sentences->front());
  }
  IsCompared is_compared;
  if (variation.row_owed) {
    is_compared = [&](OutputIndex output, std::int64_t b, std::int64_t h, std::int64_t n, auto) {
      return variation.row_owed(output, {b, h, n}).has_value();
    };
  }
  return check_agree(run.kernel(), launch.outputs, owed(variation, *of_case),
                     agreement_of(run, law, variation, inputs, of_reference),
                     variation.failure.empty() ? law.failure : variation.failure, is_compared);
}

Law law_of(VariationLaw row) {
  const auto vary = [row](Run& run) { return row.vary(run, LawDraws(run.the_case(), row.stream)); };
  return {
      .name = row.name,
      .statement = row.statement,
      .cost = Law::Cost::more_launches,
      .layer = row.layer,
      .operations = row.operations,
      .needs_own_values = row.needs_own_values,
      .applies =
          [vary](Run& run) {
            const Varied varied = vary(run);
            const auto* variation = std::get_if<Variation>(&varied);
            const auto is_supported = [&](const OtherCall& call) {
              return call.the_case == run.the_case() ||
                     !why_unsupported(run.kernel(), call.the_case);
            };
            return variation != nullptr && is_supported(variation->call) &&
                   (!variation->reference || is_supported(*variation->reference));
          },
      .check = [vary, row](Run& run) { return check(run, row, std::get<Variation>(vary(run))); },
      .declines = [vary](Run& run) -> std::optional<std::string> {
        const Varied varied = vary(run);
        const auto* declined = std::get_if<Declined>(&varied);
        return declined != nullptr ? std::optional(declined->why) : std::nullopt;
      }};
}

}  // namespace

std::int64_t LawDraws::below(std::int64_t limit, std::uint64_t index) const {
  return random_below(case_.inputs.seed, stream_.value(), index, limit);
}

std::optional<std::int64_t> LawDraws::entry(
    const std::function<bool(std::int64_t b)>& is_eligible) const {
  std::vector<std::int64_t> entries;
  for (std::int64_t b = 0; b < case_.problem.batch; ++b) {
    if (is_eligible(b)) entries.push_back(b);
  }
  if (entries.empty()) return std::nullopt;
  return entries[static_cast<std::size_t>(below(static_cast<std::int64_t>(entries.size())))];
}

VariationLaws::VariationLaws(std::vector<VariationLaw> rows) {
  for (VariationLaw& row : rows) LawRegistration{law_of(std::move(row))};
}

Outputs owed(const Variation& variation, const Outputs& of_case) {
  if (!variation.row_owed) return of_case;
  Outputs outputs;
  for (std::size_t i = 0; i < of_case.size(); ++i) {
    const OutputIndex output{i};
    outputs[output] =
        owed_rows(of_case[output], shape_of(variation, output), output, variation.row_owed);
  }
  return outputs;
}

Variation entry_alone(const Case& c, std::int64_t b, std::vector<std::int64_t> keys) {
  OtherCall call{.the_case = c};
  Problem& p = call.the_case.problem;
  p.batch = 1;
  p.query_len = c.problem.query_len_of(b);
  p.key_len = static_cast<std::int64_t>(keys.size());
  take_away_seeds(p);
  p.dropout = 0;
  call.the_case.layouts = {};
  call.the_case.layouts.paging = c.layouts.paging;
  call.inputs = [p, b, keys = std::move(keys)](const Inputs& from) {
    Inputs inputs;
    // Scales of rows and blocks: of the first keys.
    for (std::size_t i = 0; i < p.operation->inputs().size(); ++i) {
      inputs[InputIndex{i}] = selected(
          p, InputIndex{i}, from, [b](auto) { return b; }, [](auto n) { return n; }, keys);
    }
    return inputs;
  };
  return {.call = std::move(call),
          .row_owed =
              [b, p](OutputIndex output, const RowPlace& row) {
                const bool is_owed =
                    !sums_over_entries(p, output) && !(*p.operation)[output].is_of_pairs;
                return is_owed ? std::optional(RowPlace{b, row.h, row.n}) : std::nullopt;
              },
          .has_own_bound = true};
}

}  // namespace attest
