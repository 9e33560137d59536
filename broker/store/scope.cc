#include "broker/store/scope.h"

#include <algorithm>

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

Filter Nothing() {
  Filter none;
  none.kind = Filter::Kind::kNot;
  none.children.emplace_back();
  return none;
}

}  // namespace

bool Scope::Contains(std::string_view project, std::string_view user) const {
  if (is_all_) return true;
  return std::find(projects_.begin(), projects_.end(), project) != projects_.end() ||
         std::find(users_.begin(), users_.end(), user) != users_.end();
}

Filter Scope::Narrow(Filter filter) const {
  if (is_all_) return filter;
  Filter any;
  any.kind = Filter::Kind::kOr;
  AddEach(Filter::Kind::kProject, projects_, &any);
  AddEach(Filter::Kind::kUser, users_, &any);
  if (any.children.empty()) return Nothing();
  // A single comparison can be found through an index.
  if (any.children.size() == 1) any = Filter(any.children.front());
  return contract::And(std::move(filter), std::move(any));
}

}  // namespace muster::store
