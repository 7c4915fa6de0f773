#pragma once

#include <cstdint>

namespace attest {

/// Streams of core/inputs/random.hpp that the judge draws from by a case's `inputs.seed`: one for
/// each use, so that no two draws go together. The compiler numbers them, above those of the input
/// families and of the layouts; a new one comes last, or every case's laws draw something else.
enum JudgeStream : std::uint64_t {
  stream_costly_law = 1024,  ///< which law that launches again a case checks
  stream_batch_mates,
  stream_capacity,
  stream_constant_value,
  stream_copied_part,
  stream_empty_part,
  stream_equal_queries,
  stream_equal_keys,
  stream_equal_values,
  stream_leveled_keys,
  stream_leveled_gradient,
  stream_forward_pass,
  stream_hidden_chunk,
  stream_hidden_keys,
  stream_infinite_keys,
  stream_infinite_values,
  stream_single_entry,
  stream_changed_lengths,
  stream_more_mates,
  stream_nan_part,
  stream_nan,
  stream_other_queries,
  stream_removed_padding,
  stream_page_size,
  stream_peak_code,
  stream_peak,
  stream_peak_level,
  stream_peak_value,
  stream_peak_gradient,
  stream_other_plan,
  stream_range,
  stream_scaled_gradient,
  stream_scaled_values,
  stream_shifted_keys,
  stream_single_query,
  stream_other_indices,
  stream_other_problem,
  stream_other_values,
  stream_entry_gap,
  stream_broadcast,
  stream_units,                             ///< and one more for each further input
  stream_lse_gradient = stream_units + 16,  ///< as stream_units: more than any operation has inputs
  stream_drawn_codes = stream_lse_gradient + 16,
  stream_drawn_scales,
  stream_other_granularity,
  stream_other_code,
  stream_whole_scores,
  stream_unit_values,
  stream_document,
  stream_constant_bias,
  stream_listed_keys,
  stream_scaled_weights,
  stream_keys_of_zeros,
  stream_nan_epilogue,
};

}  // namespace attest
