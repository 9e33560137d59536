#include "contract/filter.h"

#include <utility>

#include "contract/micros.h"

namespace muster::contract {
namespace {

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
    case Filter::Op::kHas:
      return true;
  }
  return false;
}

// A number of a field that the job has, or has not.
bool CompareIf(bool has, const Filter& filter, int64_t number) {
  return has && Compare(filter.op, number, filter.number);
}

bool CompareName(const Filter& filter, const std::string& name) {
  if (!filter.is_pattern()) return Compare(filter.op, name, filter.value);
  return MatchesPattern(name, filter.value) == (filter.op == Filter::Op::kEq);
}

bool CompareCluster(const Filter& filter, const std::string& cluster) {
  if (filter.op == Filter::Op::kHas) return !cluster.empty();
  return Compare(filter.op, cluster, filter.value);
}

bool CompareLabel(const Filter& filter, const v1::Job& job) {
  const auto label = job.labels().find(filter.key);
  return label != job.labels().end() && Compare(filter.op, label->second, filter.value);
}

}  // namespace

bool IsText(Filter::Kind kind) {
  using Kind = Filter::Kind;
  return kind == Kind::kName || kind == Kind::kProject || kind == Kind::kUser ||
         kind == Kind::kCluster || kind == Kind::kLabel;
}

bool MatchesPattern(std::string_view text, std::string_view pattern) {
  // The match goes on from here if the rest does not fit: `star` is the last `*`, `swallowed` the
  // bytes that it has taken so far.
  size_t star = pattern.npos, swallowed = 0;
  size_t at = 0, in = 0;
  while (at < text.size()) {
    if (in < pattern.size() && pattern[in] == '*') {
      star = in++;
      swallowed = at;
    } else if (in < pattern.size() && pattern[in] == text[at]) {
      ++in;
      ++at;
    } else if (star != pattern.npos) {
      in = star + 1;
      at = ++swallowed;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in) == pattern.npos;
}

std::optional<int32_t> ExitCodeOf(const v1::ExitStatus& exit) {
  if (exit.signal() != 0) return std::nullopt;
  return exit.code();
}

bool Filter::is_pattern() const {
  return kind == Kind::kName && value.find('*') != std::string::npos;
}

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
    case Kind::kId:
      return CompareIf(true, *this, static_cast<int64_t>(job.id()));
    case Kind::kName:
      return CompareName(*this, job.name());
    case Kind::kState:
      return CompareIf(true, *this, job.state());
    case Kind::kProject:
      return Compare(op, job.project(), value);
    case Kind::kUser:
      return Compare(op, job.user(), value);
    case Kind::kCluster:
      return CompareCluster(*this, job.cluster());
    case Kind::kClusterKind:
      return CompareIf(job.cluster_kind() != v1::CLUSTER_KIND_UNSPECIFIED, *this,
                       job.cluster_kind());
    case Kind::kPriority:
      return CompareIf(true, *this, job.priority());
    case Kind::kHeld:
      return CompareIf(true, *this, job.held());
    case Kind::kCancelRequested:
      return CompareIf(true, *this, job.cancel_requested());
    case Kind::kCreateTime:
      return CompareIf(true, *this, Micros(job.create_time()));
    case Kind::kStartTime:
      return CompareIf(job.has_start_time(), *this, Micros(job.start_time()));
    case Kind::kEndTime:
      return CompareIf(job.has_end_time(), *this, Micros(job.end_time()));
    case Kind::kFailureClass:
      return CompareIf(job.failure().failure_class() != v1::FAILURE_CLASS_UNSPECIFIED, *this,
                       job.failure().failure_class());
    case Kind::kExitCode:
      return CompareIf(job.has_exit() && ExitCodeOf(job.exit()), *this, job.exit().code());
    case Kind::kLabel:
      return CompareLabel(*this, job);
  }
  return false;
}

Filter And(Filter a, Filter b) {
  if (a.kind == Filter::Kind::kAll) return b;
  if (b.kind == Filter::Kind::kAll) return a;
  Filter both;
  both.kind = Filter::Kind::kAnd;
  both.children.push_back(std::move(a));
  both.children.push_back(std::move(b));
  return both;
}

Filter InStates(const std::vector<v1::JobState>& states) {
  Filter any;
  any.kind = Filter::Kind::kOr;
  for (const v1::JobState state : states) {
    Filter& one = any.children.emplace_back();
    one.kind = Filter::Kind::kState;
    one.number = state;
  }
  return any;
}

}  // namespace muster::contract
