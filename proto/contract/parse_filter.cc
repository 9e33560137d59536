// The parser of filters.
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/filter.h"
#include "contract/nearest.h"
#include "contract/text.h"
#include "contract/units.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::contract {
namespace {

constexpr std::string_view kLabelPrefix = "label.";
constexpr std::string_view kHas = ":*";

// The fields, except for labels.
struct FilterField {
  std::string_view name;
  Filter::Kind kind;
  bool is_ordered;  // whether < and the like compare it
  bool may_be_absent;
};
constexpr FilterField kFilterFields[] = {
    {"id", Filter::Kind::kId, true, false},
    {"name", Filter::Kind::kName, false, false},
    {"state", Filter::Kind::kState, false, false},
    {"project", Filter::Kind::kProject, false, false},
    {"user", Filter::Kind::kUser, false, false},
    {"cluster", Filter::Kind::kCluster, false, true},
    {"cluster_kind", Filter::Kind::kClusterKind, false, true},
    {"priority", Filter::Kind::kPriority, true, false},
    {"held", Filter::Kind::kHeld, false, false},
    {"create_time", Filter::Kind::kCreateTime, true, false},
    {"start_time", Filter::Kind::kStartTime, true, true},
    {"end_time", Filter::Kind::kEndTime, true, true},
    {"failure_class", Filter::Kind::kFailureClass, false, true},
    {"exit_code", Filter::Kind::kExitCode, true, true},
};
constexpr std::string_view kTerms =
    "id, name, state, project, user, cluster, cluster_kind, priority, held, create_time, "
    "start_time, end_time, failure_class, exit_code, label.KEY, NOT or \"(\"";

const FilterField* FindField(std::string_view name) {
  static constexpr FilterField kLabel = {"label.KEY", Filter::Kind::kLabel, false, true};
  for (const FilterField& field : kFilterFields) {
    if (name == field.name) return &field;
  }
  return name.starts_with(kLabelPrefix) && name.size() > kLabelPrefix.size() ? &kLabel : nullptr;
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

// An enumerator by its name, in any case, and without its prefix. Nothing: there is none.
template <typename Enum>
std::optional<int64_t> FindEnumerator(std::string_view prefix, const std::string& text,
                                      bool (*parse)(const std::string&, Enum*)) {
  Enum value;
  if (!parse(fmt::format("{}{}", prefix, absl::AsciiStrToUpper(text)), &value)) return std::nullopt;
  return value == 0 ? std::nullopt : std::optional<int64_t>(value);
}

std::optional<int64_t> FindNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional<int64_t>(number) : std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view text, absl::Time now) : lexer_(text), now_(now) {}

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
  // Returns whether a term could begin here.
  bool AtTerm() const {
    return At(Token::Kind::kOpen) || (At(Token::Kind::kWord) && !AtKeyword("OR"));
  }

  absl::Status Expected(std::string_view what) const {
    const Token& token = lexer_.token();
    const std::string found = token.kind == Token::Kind::kEnd ? "the end" : Quoted(token.text);
    return BadField("filter", fmt::format("expected {} at character {}, found {}", what,
                                          token.position + 1, found));
  }

  absl::Status UnknownField(std::string_view name) const {
    std::vector<std::string_view> names;
    for (const FilterField& field : kFilterFields) names.push_back(field.name);
    // Slurm and Kubernetes call it so.
    const std::string_view nearest = name == "status" ? "state" : Nearest(name, names);
    if (nearest.empty()) return Expected(kTerms);
    return BadField("filter", fmt::format("{} at character {} is no field; did you mean {}?",
                                          Quoted(name), lexer_.token().position + 1, nearest));
  }

  absl::StatusOr<Filter> ParseExpression(int depth) {
    Filter chain;
    chain.kind = Filter::Kind::kAnd;
    do {
      if (AtKeyword("AND") && !chain.children.empty()) lexer_.Advance();
      auto factor = ParseFactor(depth);
      if (!factor.ok()) return factor;
      chain.children.push_back(*std::move(factor));
    } while (AtTerm());
    return Simplest(std::move(chain));
  }

  absl::StatusOr<Filter> ParseFactor(int depth) {
    Filter chain;
    chain.kind = Filter::Kind::kOr;
    do {
      if (!chain.children.empty()) lexer_.Advance();
      auto term = ParseTerm(depth);
      if (!term.ok()) return term;
      chain.children.push_back(*std::move(term));
    } while (AtKeyword("OR"));
    return Simplest(std::move(chain));
  }

  static Filter Simplest(Filter chain) {
    if (chain.children.size() > 1) return chain;
    Filter only = std::move(chain.children.front());
    return only;
  }

  absl::StatusOr<Filter> ParseTerm(int depth) {
    if (!AtKeyword("NOT")) return ParseSimple(depth);
    lexer_.Advance();
    auto negated = ParseSimple(depth);
    if (!negated.ok()) return negated;
    Filter filter;
    filter.kind = Filter::Kind::kNot;
    filter.children.push_back(*std::move(negated));
    return filter;
  }

  absl::StatusOr<Filter> ParseSimple(int depth) {
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
    if (!At(Token::Kind::kWord)) return Expected(kTerms);
    const std::string typed = lexer_.token().text;  // outlives its token
    std::string_view name = typed;
    bool is_has = name.ends_with(kHas);
    if (is_has) name.remove_suffix(kHas.size());
    const FilterField* const field = FindField(name);
    if (field == nullptr) return UnknownField(name);
    Filter filter;
    filter.kind = field->kind;
    if (field->kind == Filter::Kind::kLabel) filter.key = name.substr(kLabelPrefix.size());
    if (is_has && !field->may_be_absent) {
      return BadField("filter",
                      fmt::format("every job has a {}, so {} says nothing at character "
                                  "{}; compare it with a value",
                                  name, lexer_.token().text, lexer_.token().position + 1));
    }
    lexer_.Advance();
    if (is_has) {
      filter.op = Filter::Op::kHas;
      return filter;
    }
    if (!At(Token::Kind::kOperator) || !SetOperator(field->is_ordered, &filter)) {
      return Expected(field->is_ordered ? "=, !=, <, <=, > or >=" : "= or !=");
    }
    lexer_.Advance();
    if (At(Token::Kind::kEnd)) {
      return BadField("filter",
                      fmt::format("the value of {} is empty at character {}; if it comes from a "
                                  "variable of the shell, set that",
                                  name, lexer_.token().position + 1));
    }
    if (!At(Token::Kind::kWord) && !At(Token::Kind::kText)) {
      return Expected("a value (with a closing quote if it is quoted)");
    }
    if (absl::Status status = SetValue(&filter); !status.ok()) return status;
    lexer_.Advance();
    return filter;
  }

  bool SetOperator(bool is_ordered, Filter* filter) const {
    static constexpr std::pair<std::string_view, Filter::Op> kOperators[] = {
        {"=", Filter::Op::kEq},  {"!=", Filter::Op::kNe}, {"<", Filter::Op::kLt},
        {"<=", Filter::Op::kLe}, {">", Filter::Op::kGt},  {">=", Filter::Op::kGe},
    };
    for (const auto& [spelling, op] : kOperators) {
      if (lexer_.token().text != spelling) continue;
      filter->op = op;
      return is_ordered || op == Filter::Op::kEq || op == Filter::Op::kNe;
    }
    return false;
  }

  absl::Status SetValue(Filter* filter) const {
    const std::string& text = lexer_.token().text;
    if (IsText(filter->kind)) {
      filter->value = text;
      return absl::OkStatus();
    }
    switch (filter->kind) {
      case Filter::Kind::kState:
        return Set(FindEnumerator("JOB_STATE_", text, &v1::JobState_Parse),
                   "QUEUED, PENDING, RUNNING, SUSPENDED, SUCCEEDED, FAILED or CANCELED", filter);
      case Filter::Kind::kClusterKind:
        return Set(FindEnumerator("CLUSTER_KIND_", text, &v1::ClusterKind_Parse),
                   "SLURM, KUBERNETES or MACHINES", filter);
      case Filter::Kind::kFailureClass:
        return Set(FindEnumerator("FAILURE_CLASS_", text, &v1::FailureClass_Parse),
                   "PROGRAM, INFRA, TIMEOUT, OOM, CONFIG, PREEMPTED or IMAGE", filter);
      case Filter::Kind::kHeld:
        if (text != "true" && text != "false") return Expected("true or false");
        filter->number = text == "true";
        return absl::OkStatus();
      case Filter::Kind::kId:
      case Filter::Kind::kPriority:
      case Filter::Kind::kExitCode:
        return Set(FindNumber(text), "a whole number", filter);
      default:
        return SetTime(text, filter);
    }
  }

  absl::Status Set(std::optional<int64_t> number, std::string_view expected, Filter* filter) const {
    if (!number) return Expected(expected);
    filter->number = *number;
    return absl::OkStatus();
  }

  absl::Status SetTime(const std::string& text, Filter* filter) const {
    absl::Time time;
    if (text.starts_with('-')) {
      const auto ago = ParseDuration(std::string_view(text).substr(1));
      if (!ago.ok()) return Expected("a time like 2026-01-31T18:00:00Z, or -1h or -2d12h");
      time = now_ - *ago;
      filter->is_relative = true;
    } else if (!absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) {
      return Expected("a time like 2026-01-31T18:00:00Z, or -1h or -2d12h");
    }
    filter->number = absl::ToUnixMicros(time);
    return absl::OkStatus();
  }

  Lexer lexer_;
  const absl::Time now_;
};

}  // namespace

absl::StatusOr<Filter> ParseFilter(std::string_view text, absl::Time now) {
  if (text.size() > kMaxFilterBytes) {
    return BadField("filter",
                    fmt::format("{} bytes long; use at most {}", text.size(), kMaxFilterBytes));
  }
  return Parser(text, now).ParseAll();
}

}  // namespace muster::contract
