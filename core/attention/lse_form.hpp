#pragma once

namespace attest {

/// In which unit the maximum is kept, and so how the LSE is formed.
enum class LseForm {
  natural,  ///< fl(m + ln l), m a scaled score, or fl(m scale) for a scale inside the exponent
  log2      ///< m holds log2(e), as scores times fl(scale log2 e) do: fl(m ln 2) + ln l, or ln 2
            ///< times fl(m + log2 l)
};

}  // namespace attest
