#include "clients/cli/filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "clients/cli/options.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

// "(field = a OR field = b)".
void AddAlternatives(std::string_view field, const std::vector<std::string>& values,
                     std::vector<std::string>* terms) {
  if (values.empty()) return;
  std::vector<std::string> parts;
  for (const std::string& value : values) {
    const bool is_held = field == "state" && value == kHeldState;
    parts.push_back(is_held ? "held = true" : fmt::format("{} = {}", field, FilterText(value)));
  }
  terms->push_back(fmt::format("({})", fmt::join(parts, " OR ")));
}

// The states of jobs that have not ended.
std::vector<std::string> ActiveStates() {
  std::vector<std::string> states;
  for (int i = v1::JobState_MIN + 1; i <= v1::JobState_MAX; ++i) {
    const auto state = static_cast<v1::JobState>(i);
    if (v1::JobState_IsValid(i) && !contract::IsTerminal(state))
      states.emplace_back(contract::Name(state));
  }
  return states;
}

}  // namespace

std::string FilterText(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string FilterOf(const Invocation& call) {
  std::vector<std::string> terms;
  AddAlternatives("state", call.states, &terms);
  if (call.only_active) AddAlternatives("state", ActiveStates(), &terms);
  AddAlternatives("cluster", call.spec.clusters, &terms);
  if (call.spec.name) terms.push_back("name = " + FilterText(*call.spec.name));
  if (call.spec.project) terms.push_back("project = " + FilterText(*call.spec.project));
  for (const std::string& label : call.spec.labels) {
    const size_t equals = std::min(label.find('='), label.size());
    const std::string value = equals < label.size() ? label.substr(equals + 1) : "";
    terms.push_back(fmt::format("label.{} = {}", label.substr(0, equals), FilterText(value)));
  }
  // Alone it stays as it was written, so that the broker's errors name the right place in it.
  if (terms.empty()) return call.filter;
  if (!call.filter.empty()) terms.push_back(fmt::format("({})", call.filter));
  return fmt::format("{}", fmt::join(terms, " AND "));
}

}  // namespace muster::cli
