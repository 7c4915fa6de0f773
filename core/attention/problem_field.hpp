#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/attention/problem.hpp"

namespace attest {
/// Features of a kernel beyond dense problems with at least one query. Windows are masks. The row
/// of a Problem's field in problem_fields() says which feature it asks for.
struct Features {
  bool no_queries = false;      ///< query_len 0
  bool value_dim = false;       ///< V and O narrower or wider than Q and K
  bool values_in_keys = false;  ///< V is the first columns of K
  bool softcap = false;
  bool lengths = false;  ///< entries of the batch with lengths of their own, 0 included, packed
  bool padding = false;  ///< hidden keys
  bool lse_gradient = false;  ///< dLSE, of backward kernels
  bool sinks = false;         ///< learned sinks, one a query head
  bool slopes = false;        ///< ALiBi
  bool bias = false;          ///< a number added to each score, however it is shared
  bool prefix = false;        ///< first keys that all queries of an entry see
  bool documents = false;     ///< several documents in an entry
  bool lists = false;         ///< lists of the keys that queries see
  bool dropout = false;
  bool ue8m0_scales = false;  ///< scales that are powers of two, in a byte
  bool gate = false;          ///< a number that each element of O is multiplied by
  bool residual = false;      ///< a number that is added to each element of O
};

/// Kind of a field's value: the alternatives of FieldValue in their order.
enum class FieldKind : std::size_t { size, seed, real, choice };
/// The value of a field; of a choice its name.
using FieldValue = std::variant<std::int64_t, std::uint64_t, float, std::string_view>;

/// Member of Problem, or of a part of it, that holds the field.
using FieldMember =
    std::variant<std::int64_t Problem::*, std::int64_t Window::*, std::uint64_t Problem::*,
                 float Problem::*, Mask Problem::*, ElementType Problem::*, Values Problem::*,
                 LseGradient Problem::*, Sinks Problem::*, Slopes Problem::*, Bias Problem::*,
                 OutputGate Problem::*, Residual Problem::*, Code Codes::*, Scales Codes::*,
                 ScaleFormat Codes::*, const Operation * Problem::*>;

/// Form of a field in the keys of a table of tuned Plans (core/run/tuning_key.hpp), whose parts
/// stand in this order.
enum class InTuningKey {
  no,
  by_name,
  by_mask_name,  ///< without its alignment where all alignments agree
  exactly,
  whether_used,   ///< its feature
  as_bucket,      ///< the next power of two, which must be the same
  as_near_bucket  ///< the next power of two, which may differ
};

/// Feature that a kernel must offer before it is asked for problems in which the field is not
/// plain.
struct FieldFeature {
  std::string_view name;     ///< among facts and claims, in tuning keys, to plugins
  bool Features::*flag;      ///< the kernel's claim
  std::string_view refusal;  ///< behind the name of a kernel that does not offer it
  bool (*is_used)(const Problem&) = nullptr;  ///< nullptr: the field has not its default
  void (*take_away)(Problem&) = nullptr;      ///< nullptr: the field gets its default
};

/// A field of Problem. Text, JSON, validation, axes of studies, keys of tuned Plans, features of
/// kernels, claims and shrinking go through the list of them; so a new field is a member and a row.
struct ProblemField {
  std::string_view name;     ///< in JSON and in complaints
  std::string_view summary;  ///< for who writes a study
  FieldMember member;
  std::span<const std::string_view> choices = {};  ///< of a choice, by enumerator
  double low = 0, high = 0;                        ///< allowed, both included: of sizes and reals
  std::string_view allowed = {};  ///< allowed values in words; empty: `low to high`

  /// Text before the value, with `/` behind the field before; empty: a choice, whose names are
  /// parts of their own.
  std::string_view prefix = {};
  std::string_view example = {};   ///< a part of a text; empty where the choices are all
  bool is_always_written = false;  ///< in text; others where they have not their default
  std::string_view axis = {};      ///< name of the axis in studies; empty: `name`
  bool is_axis = true;             ///< false: no axis, as studies time attention alone

  /// Gives the field a default that depends on fields before it; nullptr: that of Problem.
  void (*follow)(Problem&) = nullptr;
  /// Tests if a problem has the field; elsewhere it keeps its default. nullptr: all problems have
  /// it.
  bool (*belongs_to)(const Problem&) = nullptr;
  /// Value that a default of 0 stands for; nullptr: 0 itself.
  std::int64_t (*in_effect)(const Problem&) = nullptr;

  InTuningKey in_tuning_key = InTuningKey::no;
  std::optional<FieldFeature> feature = std::nullopt;  ///< a seed has one

  [[nodiscard]] FieldKind kind() const;
  [[nodiscard]] std::string_view axis_name() const { return axis.empty() ? name : axis; }
  /// True if JSON must have the field. Where a default depends on other fields, a file says what it
  /// was.
  [[nodiscard]] bool is_required() const { return is_always_written || follow != nullptr; }
};

/// All fields, in the order of the members of Problem: a default follows from fields before.
[[nodiscard]] std::span<const ProblemField> problem_fields();

[[nodiscard]] FieldValue value_of(const ProblemField& field, const Problem& problem);
/// Takes what value_of gives. The range is not looked at: validate() does. Throws InvalidInput for
/// a choice that there is not.
void set_value(const ProblemField& field, Problem& problem, const FieldValue& value);

/// `4096`, `0.125`, `causal_top_left`.
[[nodiscard]] std::string text_of(const ProblemField& field, const Problem& problem);
/// Value of a text, inverse of text_of(); nothing for what is no value of the field's kind, or more
/// than one.
[[nodiscard]] std::optional<FieldValue> value_from(const ProblemField& field,
                                                   std::string_view text);

[[nodiscard]] bool has_default(const ProblemField& field, const Problem& problem);
void set_default(const ProblemField& field, Problem& problem);
/// Gives the fields that are not given the defaults that depend on others.
void follow_given(Problem& problem, const std::function<bool(const ProblemField&)>& is_given);

/// Throws InvalidInput naming the field, the value and the allowed range when the value is outside
/// of the field's own range.
void require_in_range(const ProblemField& field, const Problem& problem);

/// A field as a kernel in another language is told of it, by a name that never changes: a size in
/// effect or a real, a choice's enumerator, and of a seed, which only draws what the kernel gets as
/// an array, 1 when there is one.
struct FieldForKernels {
  std::string_view name;
  std::variant<std::int64_t, double> value;
};
[[nodiscard]] FieldForKernels for_kernels(const ProblemField& field, const Problem& problem);

/// True if the problem needs the field's feature; false for a field that needs none.
[[nodiscard]] bool uses_feature(const ProblemField& field, const Problem& problem);
/// Makes the problem one that does not need it, if the field has one.
void take_feature_away(const ProblemField& field, Problem& problem);

}  // namespace attest
