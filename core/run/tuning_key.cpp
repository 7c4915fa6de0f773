#include "core/run/tuning_key.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

namespace attest {
namespace {

std::int64_t bucket(std::int64_t size) {
  return size <= 0 ? size
                   : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
}

/// `causal` of `causal_top_left`.
std::string_view without_alignment(std::string_view mask) {
  for (const std::string_view alignment : {"_top_left", "_bottom_right"}) {
    if (mask.ends_with(alignment)) mask.remove_suffix(alignment.size());
  }
  return mask;
}

std::string_view mask_of(const Problem& problem) {
  const std::string_view name = name_of(problem.mask);
  const bool is_square = problem.query_len == problem.key_len && problem.length_seed == 0;
  return is_square ? without_alignment(name) : name;
}

bool masks_agree(std::string_view a, std::string_view b) {
  return a == b || a == without_alignment(b) || without_alignment(a) == b;
}

/// Up to so many queries of an entry, what is fastest is how keys are split, and that hangs on
/// every size: no other bucket says anything.
constexpr std::int64_t few_queries = 16;

/// Sizes are buckets; none is counted like one.
int octaves(std::int64_t a, std::int64_t b) {
  const auto width = [](std::int64_t size) {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size < 1 ? 1 : size)));
  };
  return std::abs(width(a) - width(b));
}

/// The value of a field that enters keys.
TuningKeyPart part_of(const ProblemField& field, const Problem& problem) {
  TuningKeyPart part{.name = field.name, .kind = field.in_tuning_key, .value = {}};
  switch (field.in_tuning_key) {
    case InTuningKey::no:
      break;
    case InTuningKey::by_name:
      part.value = text_of(field, problem);
      break;
    case InTuningKey::by_mask_name:
      part.value = std::string(mask_of(problem));
      break;
    case InTuningKey::exactly:
      part.value = std::get<std::int64_t>(for_kernels(field, problem).value);
      break;
    case InTuningKey::whether_used:
      part.name = field.feature->name;
      part.value = uses_feature(field, problem);
      break;
    case InTuningKey::as_bucket:
    case InTuningKey::as_near_bucket:
      part.value = bucket(std::get<std::int64_t>(for_kernels(field, problem).value));
  }
  return part;
}

void add_fields(InTuningKey kind, const Problem& problem, TuningKey& key) {
  for (const ProblemField& field : problem_fields()) {
    if (field.in_tuning_key == kind) key.problem.push_back(part_of(field, problem));
  }
}

}  // namespace

TuningKey tuning_key(std::string_view kernel, const Problem& problem, std::string_view gpu) {
  using enum InTuningKey;
  TuningKey key{.kernel = std::string(kernel), .gpu = std::string(gpu), .problem = {}};
  for (const InTuningKey kind : {by_name, by_mask_name, exactly, whether_used, as_bucket}) {
    add_fields(kind, problem, key);
  }
  key.problem.push_back({"group", as_bucket, bucket(problem.query_heads / problem.kv_heads)});
  key.problem.push_back({"heads", as_near_bucket, bucket(problem.batch * problem.query_heads)});
  add_fields(as_near_bucket, problem, key);
  return key;
}

std::optional<int> octaves_between(const TuningKey& a, const TuningKey& b) {
  if (a.kernel != b.kernel || a.problem.size() != b.problem.size()) return std::nullopt;
  int sum = 0;
  bool is_for_few_queries = false;
  for (std::size_t i = 0; i < a.problem.size(); ++i) {
    const TuningKeyPart &of_a = a.problem[i], &of_b = b.problem[i];
    if (of_a.kind == InTuningKey::as_near_bucket) {
      const auto size_a = std::get<std::int64_t>(of_a.value),
                 size_b = std::get<std::int64_t>(of_b.value);
      sum += octaves(size_a, size_b);
      if (of_a.name == "query_len") is_for_few_queries = std::min(size_a, size_b) <= few_queries;
    } else if (of_a.kind == InTuningKey::by_mask_name) {
      if (!masks_agree(std::get<std::string>(of_a.value), std::get<std::string>(of_b.value))) {
        return std::nullopt;
      }
    } else if (of_a != of_b) {
      return std::nullopt;
    }
  }
  if (is_for_few_queries && sum > 0) return std::nullopt;
  return sum;
}

std::string_view gpu_name_in(std::string_view description) {
  return description.substr(0, description.find(", "));
}

}  // namespace attest
