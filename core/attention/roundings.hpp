#pragma once

#include <any>
#include <concepts>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace attest {

/// Roundings that a run performs: a value of the type that the kernel's operation names, which
/// alone looks inside. Attention's is PrecisionPlan.
class Roundings {
 public:
  template <typename T>
  requires(!std::same_as<std::remove_cvref_t<T>, Roundings>) Roundings(T&& value)
      : value_(std::forward<T>(value)) {}  // NOLINT: a kernel returns its own type

  /// The roundings as type T. Throws std::logic_error if they are of another operation.
  template <typename T>
  [[nodiscard]] const T& as() const {
    const T* value = std::any_cast<T>(&value_);
    if (value == nullptr) throw std::logic_error("roundings of another operation");
    return *value;
  }

 private:
  std::any value_;
};

}  // namespace attest
