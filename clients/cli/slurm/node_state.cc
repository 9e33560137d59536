#include "clients/cli/slurm/node_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::cli {
namespace {

// The base states, in the order by which sinfo sorts them.
constexpr std::array<std::string_view, 7> kBases = {"unknown", "down",  "idle",  "allocated",
                                                    "error",   "mixed", "future"};
// scontrol's words for flags, in the order by which sinfo sorts them. Others change no word of
// sinfo's.
constexpr std::array<std::string_view, 18> kNodeFlags = {
    "perfctrs",       "reserved",      "cloud",   "resume",      "drain",       "completing",
    "not_responding", "powered_down",  "fail",    "powering_up", "maintenance", "reboot_requested",
    "powering_down",  "reboot_issued", "planned", "invalid_reg", "power_down",  "blocked"};
// The lowest bits of a rank are the base state's.
constexpr uint32_t kRankOfFlags = 8;

// The first one that a node has is shown.
constexpr std::pair<std::string_view, char> kMarks[] = {
    {"maintenance", '$'}, {"reboot_issued", '^'}, {"reboot_requested", '@'},
    {"powering_up", '#'}, {"powering_down", '%'}, {"powered_down", '~'},
    {"power_down", '!'},  {"not_responding", '*'}};

// Words of sinfo's that are a base state and a flag of scontrol's.
constexpr std::pair<std::string_view, std::string_view> kSpelledOut[] = {
    {"drained", "idle+drain"},     {"draining", "mixed+drain"},   {"failing", "allocated+fail"},
    {"fail", "idle+fail"},         {"maint", "idle+maintenance"}, {"completing", "idle+completing"},
    {"reserved", "idle+reserved"}, {"planned", "idle+planned"},   {"inval", "idle+invalid_reg"},
    {"perfctrs", "idle+perfctrs"}};

// sinfo's long and short words.
constexpr std::pair<std::string_view, std::string_view> kShort[] = {
    {"allocated", "alloc"}, {"completing", "comp"}, {"draining", "drng"}, {"drained", "drain"},
    {"failing", "failg"},   {"future", "futr"},     {"mixed", "mix"},     {"perfctrs", "npc"},
    {"planned", "plnd"},    {"reboot", "boot"},     {"reserved", "resv"}, {"unknown", "unk"}};

// Other words that --states takes for flags.
constexpr std::pair<std::string_view, std::string_view> kAsked[] = {
    {"comp", "completing"},
    {"maint", "maintenance"},
    {"no_respond", "not_responding"},
    {"npc", "perfctrs"},
    {"plnd", "planned"},
    {"resv", "reserved"},
    {"inval", "invalid_reg"},
    {"reboot", "reboot_requested"},
    {"boot", "reboot_requested"}};

std::string LowerWord(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (contract::IsLetter(c) && !contract::IsLowerLetter(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

uint32_t FlagBit(std::string_view flag) {
  const auto* found = std::find(kNodeFlags.begin(), kNodeFlags.end(), flag);
  return found == kNodeFlags.end() ? 0 : uint32_t{1} << (found - kNodeFlags.begin());
}

bool IsBase(std::string_view word) {
  return std::find(kBases.begin(), kBases.end(), word) != kBases.end();
}

// "allocated" of "alloc".
std::string_view LongWord(std::string_view word) {
  const auto* found = std::find_if(std::begin(kShort), std::end(kShort),
                                   [&](const auto& one) { return one.second == word; });
  return found == std::end(kShort) ? word : found->first;
}

// The word that this is the beginning of, "drain" of "dr"; itself if there is none.
std::string_view WholeWord(std::string_view word) {
  constexpr std::string_view kMore[] = {"drain", "drained", "draining", "drng",
                                        "fail",  "failing", "failg",    "no_respond"};
  const auto is_word = [&](std::string_view one) { return one == word; };
  if (word.empty() || std::any_of(std::begin(kMore), std::end(kMore), is_word)) return word;
  const auto begins = [&](std::string_view one) { return one.starts_with(word); };
  const auto* base = std::find_if(kBases.begin(), kBases.end(), begins);
  if (base != kBases.end()) return *base;
  const auto* more = std::find_if(std::begin(kMore), std::end(kMore), begins);
  return more == std::end(kMore) ? word : *more;
}

absl::Status NoState(std::string_view word) {
  return absl::InvalidArgumentError(fmt::format(
      "Bad state string: {}; there are alloc, mix, idle, down, drain, drained, draining, fail, "
      "failing, comp, maint, resv, planned, no_respond, reboot_requested, reboot_issued, "
      "power_down, powering_down, powered_down, powering_up, inval, futr and unk",
      contract::Quoted(word)));
}

}  // namespace

NodeState NodeState::Parse(std::string_view text) {
  const std::string lower = LowerWord(text);
  NodeState state;
  for (std::string_view word : contract::Split(lower, '+')) {
    if (word.ends_with('*')) {
      state.flags_ |= FlagBit("not_responding");
      word.remove_suffix(1);
    }
    if (word == "invalid") word = "invalid_reg";
    const bool is_first = state.base_.empty();
    if (!is_first) {
      state.flags_ |= FlagBit(word);
      continue;
    }
    const std::string_view whole = LongWord(word);
    const auto* found = std::find_if(std::begin(kSpelledOut), std::end(kSpelledOut),
                                     [&](const auto& one) { return one.first == whole; });
    state.base_ = whole;
    if (found == std::end(kSpelledOut)) continue;
    const size_t plus = found->second.find('+');
    state.base_ = found->second.substr(0, plus);
    state.flags_ |= FlagBit(found->second.substr(plus + 1));
  }
  return state;
}

bool NodeState::Has(std::string_view flag) const { return (flags_ & FlagBit(flag)) != 0; }

bool NodeState::IsBusy() const {
  return base_ == "allocated" || base_ == "mixed" || Has("completing");
}

std::string NodeState::Mark() const {
  for (const auto& [flag, mark] : kMarks) {
    if (Has(flag)) return std::string(1, mark);
  }
  return "";
}

std::string NodeState::Long() const {
  const std::string silent = Answers() ? "" : "*";
  const bool is_taken = base_ == "allocated" || base_ == "mixed";
  if (Has("invalid_reg")) return "inval";
  if (Has("maintenance") && !Has("drain") && !is_taken && base_ != "down") return "maint" + silent;
  if (Has("reboot_issued") && !is_taken) return "reboot^";
  if (Has("reboot_requested") && !is_taken) return "reboot" + silent;
  if (Has("drain")) return (IsBusy() ? "draining" : "drained") + Mark();
  // As sinfo has it: a node that still has free cores is not "failing".
  const bool is_failing = base_ == "allocated" || Has("completing");
  if (Has("fail")) return (is_failing ? "failing" : "fail") + silent;
  const std::string mark = Mark();
  if (base_ == "allocated" && mark.empty() && Has("completing")) return "allocated+";
  if (Has("completing") && base_ != "allocated" && base_ != "down") return "completing" + mark;
  if (!mark.empty()) return base_ + mark;
  if (base_ == "mixed" && Has("planned")) return "mixed-";
  for (std::string_view flag : {"perfctrs", "reserved", "planned"}) {
    if (base_ == "idle" && Has(flag)) return std::string(flag);
  }
  return base_;
}

std::string NodeState::Complete() const {
  std::string text = base_;
  for (std::string_view flag : kNodeFlags) {
    if (Has(flag)) text += fmt::format("+{}", flag);
  }
  return text;
}

std::string NodeState::Short() const {
  const std::string whole = Long();
  for (const auto& [word, brief] : kShort) {
    if (whole.starts_with(word)) return std::string(brief) + whole.substr(word.size());
  }
  return whole;
}

bool NodeState::IsOut() const { return Has("drain") || base_ == "down"; }
bool NodeState::NeedsReason() const { return Has("drain") || Has("fail") || base_ == "down"; }
bool NodeState::Answers() const { return !Has("not_responding"); }

absl::StatusOr<bool> NodeState::IsAskedBy(std::string_view states) const {
  bool is_asked = true;
  const std::string lower = LowerWord(states);
  for (std::string_view word : contract::Split(lower, '&')) {
    word = WholeWord(word);
    const auto* flag = std::find_if(std::begin(kAsked), std::end(kAsked),
                                    [&](const auto& one) { return one.first == word; });
    if (flag != std::end(kAsked)) word = flag->second;
    const std::string_view base = LongWord(word);
    if (word == "drained") {
      is_asked = is_asked && Has("drain") && !IsBusy();
    } else if (word == "draining" || word == "drng") {
      is_asked = is_asked && Has("drain") && IsBusy();
    } else if (word == "failing" || word == "failg") {
      is_asked = is_asked && Has("fail") && IsBusy();
    } else if (FlagBit(word) != 0) {
      is_asked = is_asked && Has(word);
    } else if (IsBase(base)) {
      // For sinfo a node of which a part is in use is allocated, too; one that takes no more is not
      // mixed.
      const bool is_mixed = base_ == "mixed";
      const bool is_base = base == base_ && !(is_mixed && Has("drain"));
      is_asked = is_asked && (is_base || (is_mixed && base == "allocated"));
    } else {
      return NoState(word);
    }
  }
  return is_asked;
}

uint32_t NodeState::rank() const {
  const auto* base = std::find(kBases.begin(), kBases.end(), base_);
  return flags_ * kRankOfFlags + static_cast<uint32_t>(base - kBases.begin());
}

}  // namespace muster::cli
