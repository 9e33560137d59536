#include "broker/store/scope.h"

#include <algorithm>
#include <utility>

namespace muster::store {
namespace {

using contract::Filter;

void AddEach(Filter::Kind kind, const std::vector<std::string>& values, Filter* any) {
  for (const std::string& value : values) {
    Filter& one = any->children.emplace_back();
    one.kind = kind;
    one.value = value;
  }
}

// A single comparison can be found through an index.
Filter Unwrapped(Filter any) {
  return any.children.size() == 1 ? Filter(any.children.front()) : any;
}

// Takes jobs with one of these values.
Filter Only(Filter::Kind kind, const std::vector<std::string>& values) {
  Filter any;
  any.kind = Filter::Kind::kOr;
  AddEach(kind, values, &any);
  return Unwrapped(std::move(any));
}

Filter Nothing() {
  Filter none;
  none.kind = Filter::Kind::kNot;
  none.children.emplace_back();
  return none;
}

}  // namespace

bool Scope::Contains(std::string_view project, std::string_view user) const {
  const auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return is_all_ || has(projects_, project) || has(users_, user) ||
         (user == own_user_ && has(own_in_, project));
}

Filter Scope::Narrow(Filter filter) const {
  if (is_all_) return filter;
  Filter any;
  any.kind = Filter::Kind::kOr;
  AddEach(Filter::Kind::kProject, projects_, &any);
  AddEach(Filter::Kind::kUser, users_, &any);
  if (!own_in_.empty())
    any.children.push_back(contract::And(Only(Filter::Kind::kUser, {own_user_}),
                                         Only(Filter::Kind::kProject, own_in_)));
  if (any.children.empty()) return Nothing();
  any = Unwrapped(std::move(any));
  return contract::And(std::move(filter), std::move(any));
}

}  // namespace muster::store
