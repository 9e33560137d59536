#include "contract/filter.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/states.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr std::string_view kLabelPrefix = "label.";

template <typename Value>
bool Compare(Filter::Op op, const Value& left, const Value& right) {
  switch (op) {
    case Filter::Op::kEq:
      return left == right;
    case Filter::Op::kNe:
      return !(left == right);
    case Filter::Op::kLt:
      return left < right;
    case Filter::Op::kLe:
      return !(right < left);
    case Filter::Op::kGt:
      return right < left;
    case Filter::Op::kGe:
      return !(left < right);
  }
  return false;
}

absl::Time ToTime(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

bool LabelMatches(const Filter& filter, const v1::Job& job) {
  const auto label = job.labels().find(filter.key);
  const bool equal = label != job.labels().end() && label->second == filter.value;
  return equal == (filter.op == Filter::Op::kEq);
}

struct Token {
  enum class Kind { kEnd, kWord, kText, kOperator, kOpen, kClose, kBad };
  Kind kind = Kind::kEnd;
  size_t position = 0;
  std::string text;
};

// Cuts the text into tokens, one ahead of the parser.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { Advance(); }

  const Token& token() const { return token_; }

  void Advance() {
    while (position_ < text_.size() && IsSpace(text_[position_])) ++position_;
    token_ = Token{.kind = Token::Kind::kEnd, .position = position_, .text = {}};
    if (position_ == text_.size()) return;
    const char c = text_[position_];
    if (c == '(' || c == ')') {
      Take(c == '(' ? Token::Kind::kOpen : Token::Kind::kClose, 1);
    } else if (c == '"') {
      TakeQuoted();
    } else if (c == '=') {
      Take(Token::Kind::kOperator, 1);
    } else if (c == '!' || c == '<' || c == '>') {
      const bool has_equal = position_ + 1 < text_.size() && text_[position_ + 1] == '=';
      Take(c == '!' && !has_equal ? Token::Kind::kBad : Token::Kind::kOperator, has_equal ? 2 : 1);
    } else {
      const size_t end = text_.find_first_of(" \t\r\n()\"=!<>", position_);
      Take(Token::Kind::kWord, (end == text_.npos ? text_.size() : end) - position_);
    }
  }

 private:
  static bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  void Take(Token::Kind kind, size_t size) {
    token_.kind = kind;
    token_.text = text_.substr(position_, size);
    position_ += size;
  }

  void TakeQuoted() {
    token_.kind = Token::Kind::kText;
    for (++position_; position_ < text_.size(); ++position_) {
      char c = text_[position_];
      if (c == '"') {
        ++position_;
        return;
      }
      if (c == '\\' && position_ + 1 < text_.size()) c = text_[++position_];
      token_.text += c;
    }
    token_.kind = Token::Kind::kBad;
  }

  const std::string_view text_;
  size_t position_ = 0;
  Token token_;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  absl::StatusOr<Filter> ParseAll() {
    if (At(Token::Kind::kEnd)) return Filter{};
    auto filter = ParseExpression(1);
    if (filter.ok() && !At(Token::Kind::kEnd)) return Expected("AND, OR or the end");
    return filter;
  }

 private:
  bool At(Token::Kind kind) const { return lexer_.token().kind == kind; }
  bool AtKeyword(std::string_view keyword) const {
    return At(Token::Kind::kWord) && lexer_.token().text == keyword;
  }

  absl::Status Expected(std::string_view what) const {
    const Token& token = lexer_.token();
    const std::string found = token.kind == Token::Kind::kEnd ? "the end" : Quoted(token.text);
    return BadField("filter", fmt::format("expected {} at character {}, found {}", what,
                                          token.position + 1, found));
  }

  absl::StatusOr<Filter> ParseExpression(int depth) {
    return ParseChain("OR", Filter::Kind::kOr, depth, &Parser::ParseSequence);
  }
  absl::StatusOr<Filter> ParseSequence(int depth) {
    return ParseChain("AND", Filter::Kind::kAnd, depth, &Parser::ParseFactor);
  }

  absl::StatusOr<Filter> ParseChain(std::string_view keyword, Filter::Kind kind, int depth,
                                    absl::StatusOr<Filter> (Parser::*parse_part)(int)) {
    auto first = (this->*parse_part)(depth);
    if (!first.ok() || !AtKeyword(keyword)) return first;
    Filter chain;
    chain.kind = kind;
    chain.children.push_back(*std::move(first));
    while (AtKeyword(keyword)) {
      lexer_.Advance();
      auto part = (this->*parse_part)(depth);
      if (!part.ok()) return part;
      chain.children.push_back(*std::move(part));
    }
    return chain;
  }

  absl::StatusOr<Filter> ParseFactor(int depth) {
    if (!AtKeyword("NOT")) return ParsePrimary(depth);
    lexer_.Advance();
    auto negated = ParsePrimary(depth);
    if (!negated.ok()) return negated;
    Filter filter;
    filter.kind = Filter::Kind::kNot;
    filter.children.push_back(*std::move(negated));
    return filter;
  }

  absl::StatusOr<Filter> ParsePrimary(int depth) {
    if (!At(Token::Kind::kOpen)) return ParseRestriction();
    if (depth >= kMaxFilterDepth) {
      return BadField("filter", fmt::format("nested deeper than {} parentheses at character {}",
                                            kMaxFilterDepth - 1, lexer_.token().position + 1));
    }
    lexer_.Advance();
    auto inner = ParseExpression(depth + 1);
    if (!inner.ok()) return inner;
    if (!At(Token::Kind::kClose)) return Expected("AND, OR or \")\"");
    lexer_.Advance();
    return inner;
  }

  absl::StatusOr<Filter> ParseRestriction() {
    Filter filter;
    if (!At(Token::Kind::kWord) || !SetField(lexer_.token().text, &filter)) {
      return Expected("state, name, cluster, project, held, create_time, label.KEY, NOT or \"(\"");
    }
    lexer_.Advance();
    const bool is_ordered = filter.kind == Filter::Kind::kCreateTime;
    if (!At(Token::Kind::kOperator) || !SetOperator(lexer_.token().text, is_ordered, &filter)) {
      return Expected(is_ordered ? "=, !=, <, <=, > or >=" : "= or !=");
    }
    lexer_.Advance();
    if (!At(Token::Kind::kWord) && !At(Token::Kind::kText)) {
      return Expected("a value (with a closing quote if it is quoted)");
    }
    if (auto status = SetValue(lexer_.token().text, &filter); !status.ok()) return status;
    lexer_.Advance();
    return filter;
  }

  static bool SetField(std::string_view name, Filter* filter) {
    static constexpr std::pair<std::string_view, Filter::Kind> kFields[] = {
        {"state", Filter::Kind::kState},     {"name", Filter::Kind::kName},
        {"cluster", Filter::Kind::kCluster}, {"project", Filter::Kind::kProject},
        {"held", Filter::Kind::kHeld},       {"create_time", Filter::Kind::kCreateTime},
    };
    for (const auto& [field, kind] : kFields) {
      if (name != field) continue;
      filter->kind = kind;
      return true;
    }
    if (!name.starts_with(kLabelPrefix) || name.size() == kLabelPrefix.size()) return false;
    filter->kind = Filter::Kind::kLabel;
    filter->key = name.substr(kLabelPrefix.size());
    return true;
  }

  static bool SetOperator(std::string_view text, bool is_ordered, Filter* filter) {
    static constexpr std::pair<std::string_view, Filter::Op> kOperators[] = {
        {"=", Filter::Op::kEq},  {"!=", Filter::Op::kNe}, {"<", Filter::Op::kLt},
        {"<=", Filter::Op::kLe}, {">", Filter::Op::kGt},  {">=", Filter::Op::kGe},
    };
    for (const auto& [spelling, op] : kOperators) {
      if (text != spelling) continue;
      filter->op = op;
      return is_ordered || op == Filter::Op::kEq || op == Filter::Op::kNe;
    }
    return false;
  }

  absl::Status SetValue(const std::string& text, Filter* filter) const {
    if (filter->kind == Filter::Kind::kState) {
      const std::string name = "JOB_STATE_" + absl::AsciiStrToUpper(text);
      if (!v1::JobState_Parse(name, &filter->state) || filter->state == v1::JOB_STATE_UNSPECIFIED) {
        return Expected("QUEUED, PENDING, RUNNING, SUSPENDED, SUCCEEDED, FAILED or CANCELED");
      }
    } else if (filter->kind == Filter::Kind::kHeld) {
      if (text != "true" && text != "false") return Expected("true or false");
      filter->held = text == "true";
    } else if (filter->kind == Filter::Kind::kCreateTime) {
      if (!absl::ParseTime(absl::RFC3339_full, text, &filter->time, nullptr)) {
        return Expected("a time like 2026-01-31T18:00:00Z");
      }
    } else {
      filter->value = text;
    }
    return absl::OkStatus();
  }

  Lexer lexer_;
};

}  // namespace

bool Filter::Matches(const v1::Job& job) const {
  switch (kind) {
    case Kind::kAll:
      return true;
    case Kind::kAnd:
      for (const Filter& child : children) {
        if (!child.Matches(job)) return false;
      }
      return true;
    case Kind::kOr:
      for (const Filter& child : children) {
        if (child.Matches(job)) return true;
      }
      return false;
    case Kind::kNot:
      return !children.front().Matches(job);
    case Kind::kState:
      return Compare(op, job.state(), state);
    case Kind::kName:
      return Compare(op, job.name(), value);
    case Kind::kCluster:
      return Compare(op, job.cluster(), value);
    case Kind::kProject:
      return Compare(op, job.project(), value);
    case Kind::kHeld:
      return Compare(op, job.held(), held);
    case Kind::kLabel:
      return LabelMatches(*this, job);
    case Kind::kCreateTime:
      return Compare(op, ToTime(job.create_time()), time);
  }
  return false;
}

absl::StatusOr<Filter> ParseFilter(std::string_view text) {
  if (text.size() > kMaxFilterBytes) {
    return BadField("filter",
                    fmt::format("{} bytes long; use at most {}", text.size(), kMaxFilterBytes));
  }
  return Parser(text).ParseAll();
}

}  // namespace muster::contract
