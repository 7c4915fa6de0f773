#include "experiments/study/language/expression.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/base/text.hpp"

namespace attest {
namespace {

constexpr std::size_t longest_text = 1000;
constexpr int deepest = 40;

struct Token {
  enum class Kind { end, number, text, name, symbol };
  Kind kind = Kind::end;
  std::size_t at = 0;
  std::string_view text{};
  Quantity number{};
};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { advance(); }

  [[nodiscard]] const Token& now() const { return now_; }
  Token take() {
    Token token = now_;
    advance();
    return token;
  }

 private:
  [[nodiscard]] char peek(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  void advance() {
    while (peek(at_) == ' ' || peek(at_) == '\n' || peek(at_) == '\t') ++at_;
    now_ = {.at = at_};
    if (at_ >= text_.size()) return;
    const char first = text_[at_];
    if (is_digit(first) || (first == '.' && is_digit(peek(at_ + 1)))) {
      take_number();
    } else if (is_letter(first)) {
      std::size_t end = at_;
      while (is_letter(peek(end)) || is_digit(peek(end)) || peek(end) == '.') ++end;
      finish(Token::Kind::name, end);
    } else if (first == '"' || first == '\'') {
      const std::size_t end = text_.find(first, at_ + 1);
      if (end == std::string_view::npos) throw ExpressionError{at_, "the text has no end"};
      finish(Token::Kind::text, end + 1);
      now_.text = now_.text.substr(1, now_.text.size() - 2);
    } else {
      constexpr std::array<std::string_view, 15> symbols{"<=", ">=", "==", "!=", "<", ">", "+", "-",
                                                         "*",  "/",  "^",  "(",  ")", ",", "="};
      for (const std::string_view symbol : symbols) {
        if (text_.substr(at_).starts_with(symbol))
          return finish(Token::Kind::symbol, at_ + symbol.size());
      }
      throw ExpressionError{at_, fmt::format("'{}' has no meaning here", printable({&first, 1}))};
    }
  }

  void take_number() {
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{} || !std::isfinite(value))
      throw ExpressionError{at_, "the number is too large"};
    std::size_t next = at_ + static_cast<std::size_t>(end - begin);
    std::size_t unit_end = next;
    if (peek(unit_end) == '%') {
      ++unit_end;
    } else {
      while (is_letter(peek(unit_end)) || is_digit(peek(unit_end))) ++unit_end;
    }
    Quantity number{.value = value};
    if (unit_end > next) {
      const std::string_view name = text_.substr(next, unit_end - next);
      const auto unit = unit_from_name(name);
      if (!unit) {
        throw ExpressionError{
            next, fmt::format("unit '{}' is unknown; allowed: {}", printable(name), unit_names())};
      }
      number = {value * unit->value, unit->dimension};
    }
    finish(Token::Kind::number, unit_end);
    now_.number = number;
  }

  void finish(Token::Kind kind, std::size_t end) {
    now_.kind = kind;
    now_.text = text_.substr(at_, end - at_);
    at_ = end;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Token now_;
};

/// Binding strength of a binary operator; 0: the token is none.
int strength_of(const Token& token) {
  if (token.kind == Token::Kind::name) return token.text == "or" ? 1 : token.text == "and" ? 2 : 0;
  if (token.kind != Token::Kind::symbol) return 0;
  if (token.text == "+" || token.text == "-") return 5;
  if (token.text == "*" || token.text == "/") return 6;
  if (token.text == "^") return 8;
  const bool is_comparison = token.text.find_first_of("<>=!") != std::string_view::npos;
  return is_comparison ? 4 : 0;
}
constexpr int comparison = 4, negation = 3, minus = 7, power = 8;

/// Operator precedence as Pratt parsers do it.
class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(text) {}

  Expression whole() {
    Expression expression = stronger_than(0);
    if (tokens_.now().kind != Token::Kind::end) {
      throw ExpressionError{tokens_.now().at, fmt::format("'{}' follows what was complete",
                                                          printable(tokens_.now().text))};
    }
    return expression;
  }

 private:
  Expression stronger_than(int weakest) {
    if (++depth_ > deepest) throw ExpressionError{tokens_.now().at, "it is nested too deeply"};
    Expression left = prefix();
    for (int strength = strength_of(tokens_.now()); strength > weakest;
         strength = strength_of(tokens_.now())) {
      const Token sign = tokens_.take();
      if (sign.text == "=") throw ExpressionError{sign.at, "'=' has no meaning; equality is '=='"};
      // `a < b < c` reads like what it is not; 2 ^ 3 ^ 2 is 2 ^ 9.
      Expression right = stronger_than(strength == power ? power - 1 : strength);
      if (strength == comparison && strength_of(tokens_.now()) == comparison) {
        throw ExpressionError{tokens_.now().at,
                              "comparisons do not chain; write 'a < b and b < c'"};
      }
      left = {.kind = Expression::Kind::binary,
              .at = sign.at,
              .word = std::string(sign.text),
              .operands = {std::move(left), std::move(right)}};
    }
    --depth_;
    return left;
  }

  Expression prefix() {
    const Token token = tokens_.take();
    switch (token.kind) {
      case Token::Kind::number:
        return {.at = token.at, .number = token.number};
      case Token::Kind::text:
        return {.kind = Expression::Kind::text, .at = token.at, .word = std::string(token.text)};
      case Token::Kind::name:
        return named(token);
      case Token::Kind::symbol:
        if (token.text == "(") {
          Expression inner = stronger_than(0);
          expect(")");
          return inner;
        }
        if (token.text == "-") return unary(token, minus);
        [[fallthrough]];
      case Token::Kind::end:
        break;
    }
    throw ExpressionError{token.at,
                          token.kind == Token::Kind::end
                              ? "it ends where a value is due"
                              : fmt::format("'{}' stands where a value is due", token.text)};
  }

  Expression unary(const Token& sign, int strength) {
    Expression operand = stronger_than(strength);
    return {.kind = Expression::Kind::unary,
            .at = sign.at,
            .word = std::string(sign.text),
            .operands = {std::move(operand)}};
  }

  Expression named(const Token& token) {
    if (token.text == "not") return unary(token, negation);
    if (token.text == "or" || token.text == "and" || token.text == "where") {
      throw ExpressionError{token.at, fmt::format("'{}' stands where a value is due", token.text)};
    }
    Expression named{
        .kind = Expression::Kind::name, .at = token.at, .word = std::string(token.text)};
    if (!is_now("(")) return named;
    tokens_.take();
    named.kind = Expression::Kind::call;
    while (!is_now(")") && tokens_.now().text != "where") {
      named.operands.push_back(stronger_than(0));
      if (!is_now(",")) break;
      tokens_.take();
    }
    if (tokens_.now().kind == Token::Kind::name && tokens_.now().text == "where") {
      tokens_.take();
      named.where.push_back(stronger_than(0));
    }
    expect(")");
    return named;
  }

  [[nodiscard]] bool is_now(std::string_view symbol) const {
    return tokens_.now().kind == Token::Kind::symbol && tokens_.now().text == symbol;
  }
  void expect(std::string_view symbol) {
    if (!is_now(symbol))
      throw ExpressionError{tokens_.now().at, fmt::format("'{}' is missing", symbol)};
    tokens_.take();
  }

  Tokens tokens_;
  int depth_ = 0;
};

}  // namespace

ParsedExpression parse_expression(std::string_view text) {
  if (text.size() > longest_text) {
    return {
        .error = {0, fmt::format("it has {} bytes; allowed: up to {}", text.size(), longest_text)}};
  }
  try {
    return {.expression = Parser(text).whole()};
  } catch (const ExpressionError& error) {
    return {.error = error};
  }
}

}  // namespace attest
