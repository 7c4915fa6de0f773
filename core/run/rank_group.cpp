#include "core/run/rank_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "core/attention/distribution.hpp"
#include "core/operations/forward.hpp"
#include "core/run/guarded_buffer.hpp"
#include "core/run/host_memory_device.hpp"

namespace attest {
namespace {

thread_local CountedMessages* counter = nullptr;

/// Calls visit(entry, row of the rank, token) for every row.
template <typename Visit>
void for_each_row(const RankRows& rows, const Visit& visit) {
  for (std::size_t entry = 0; entry + 1 < rows.starts.size(); ++entry) {
    for (std::int64_t row = rows.starts[entry]; row < rows.starts[entry + 1]; ++row) {
      visit(static_cast<std::int64_t>(entry), row, rows.tokens[static_cast<std::size_t>(row)]);
    }
  }
}

/// The memory of one rank, and what it does there.
class RankMemory {
 public:
  RankMemory(const Problem& problem, const Plan& plan, const Inputs& inputs, std::int64_t rank,
             Device& device)
      : problem_(problem),
        rank_(rank),
        queries_(rows_of_rank(problem, Rows::queries, plan, rank)),
        keys_(rows_of_rank(problem, Rows::keys, plan, rank)),
        device_(device) {
    for (const InputIndex index : {forward::q, forward::k, forward::v})
      add_input(index, inputs[index]);
    for (const OutputIndex index : {forward::o, forward::lse}) add_output(index);
  }

  void run(const RankProgram& program, const Plan& plan, RankMessages& messages) const {
    program({.rank = rank_,
             .problem = problem_,
             .plan = plan,
             .queries = queries_,
             .keys = keys_,
             .q = places_[0],
             .k = places_[1],
             .v = places_[2],
             .o = places_[3],
             .lse = reinterpret_cast<float*>(places_[4]),
             .messages = messages});
  }

  /// Puts the rank's rows into the group's. Throws KernelError about memory that it should have
  /// written, or should not have.
  void put_outputs(Outputs& outputs) {
    MemoryReport report;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const GuardedBuffer::Contents now = buffers_[i].download(device_, images_[i]);
      buffers_[i].check(now, report);
      if (i < inputs) continue;
      const OutputIndex index{i - inputs};
      const Tensor<float> values = buffers_[i].values(now);
      for (std::int64_t head = 0; head < problem_.query_heads; ++head) {
        for_each_row(queries_, [&](auto entry, auto row, auto token) {
          std::ranges::copy(values.row(0, head, row),
                            outputs[index].row(entry, head, token).begin());
        });
      }
    }
    for (const auto* sentences :
         {&report.damaged_guards, &report.modified_inputs, &report.unwritten_outputs}) {
      if (!sentences->empty()) throw KernelError(sentences->front());
    }
  }

 private:
  static constexpr std::size_t inputs = 3;

  void add(const TensorSpec& tensor, GuardedBuffer::Use use, const Shape& shape,
           const Tensor<float>* values) {
    buffers_.emplace_back(fmt::format("rank {}'s {}", rank_, tensor.label), use, shape,
                          TensorLayout{}, tensor.format(problem_), values, Placement{});
    images_.push_back(device_.upload(buffers_.back().image()));
    places_.push_back(images_.back() + buffers_.back().first_byte());
  }

  void add_input(InputIndex index, const Tensor<float>& whole) {
    const TensorSpec& tensor = forward_operation[index];
    const RankRows& rows = tensor.rows == Rows::keys ? keys_ : queries_;
    const Shape shape = whole.shape();
    Tensor<float> values({1, shape[1], rows.count(), shape[3]});
    for (std::int64_t head = 0; head < shape[1]; ++head) {
      for_each_row(rows, [&](auto entry, auto row, auto token) {
        std::ranges::copy(whole.row(entry, head, token), values.row(0, head, row).begin());
      });
    }
    add(tensor, GuardedBuffer::Use::input, values.shape(), &values);
  }

  void add_output(OutputIndex index) {
    const TensorSpec& tensor = forward_operation[index];
    const Shape shape = tensor.shape(problem_);
    add(tensor, GuardedBuffer::Use::output, {1, shape[1], queries_.count(), shape[3]}, nullptr);
  }

  const Problem& problem_;
  const std::int64_t rank_;
  const RankRows queries_, keys_;
  Device& device_;
  std::vector<GuardedBuffer> buffers_;  ///< Q, K, V, O, LSE
  std::vector<std::byte*> images_, places_;
};

}  // namespace

CountedMessages::CountedMessages() {
  counter = this;
}

CountedMessages::~CountedMessages() {
  counter = nullptr;
}

RankRows rows_of_rank(const Problem& problem, Rows rows, const Plan& plan, std::int64_t rank) {
  RankRows result{.starts = {0}, .tokens = {}};
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    const std::int64_t length =
        rows == Rows::keys ? problem.key_len_of(entry) : problem.query_len_of(entry);
    const std::vector<std::int64_t> tokens =
        tokens_of_rank(plan.distribution, length, plan.ranks, rank);
    result.tokens.insert(result.tokens.end(), tokens.begin(), tokens.end());
    result.starts.push_back(static_cast<std::int64_t>(result.tokens.size()));
  }
  return result;
}

Outputs run_rank_group(const Problem& problem, const Plan& plan, const Inputs& inputs,
                       const RankProgram& program) {
  HostMemoryDevice device;  // lives as long as the buffers, which it gives back
  std::vector<RankMemory> ranks;
  for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
    ranks.emplace_back(problem, plan, inputs, rank, device);
  }
  RankMessages messages(plan.ranks);
  std::vector<std::exception_ptr> errors(ranks.size());
  std::vector<bool> only_waited(ranks.size());
  {
    std::mutex mutex;
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      threads.emplace_back([&, rank] {
        std::exception_ptr error;
        bool waited = false;
        try {
          ranks[rank].run(program, plan, messages);
        } catch (const MessageNeverComes&) {
          error = std::current_exception();
          waited = true;
        } catch (...) {
          error = std::current_exception();
        }
        messages.leave(static_cast<std::int64_t>(rank), error != nullptr);
        const std::scoped_lock lock(mutex);
        errors[rank] = error;
        only_waited[rank] = waited;
      });
    }
  }
  // What a rank did by itself comes before what followed for those that waited for it.
  for (const bool waited : {false, true}) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (errors[rank] && only_waited[rank] == waited) std::rethrow_exception(errors[rank]);
    }
  }
  if (counter != nullptr) counter->count(messages);
  if (const std::string left = messages.left_over(); !left.empty()) throw KernelError(left);
  Outputs outputs{Tensor<float>(forward_operation[forward::o].shape(problem)),
                  Tensor<float>(forward_operation[forward::lse].shape(problem))};
  for (RankMemory& rank : ranks) rank.put_outputs(outputs);
  return outputs;
}

}  // namespace attest
