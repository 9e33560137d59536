#include "clients/cpp/slurm/sbatch_environment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "clients/cpp/slurm/sbatch_shape.h"
#include "contract/characters.h"
#include "contract/parts.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::client::slurm {
namespace {

using contract::Quoted;

// The largest variables are named when there is too much.
constexpr size_t kMaxLargest = 3;
constexpr int64_t kMaxLoginSeconds = 3600;

// Splits at commas outside of quotes. Quotes around a whole part are left out. `open` gets a part
// whose quote does not close.
std::vector<std::string> SplitExport(std::string_view text, std::string* open) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    bool in_single = false, in_double = false;
    size_t end = 0;
    for (; end < text.size() && (text[end] != ',' || in_single || in_double); ++end) {
      if (text[end] == '\'') in_single = !in_single;
      if (text[end] == '"') in_double = !in_double;
    }
    std::string_view part = text.substr(0, end);
    if (in_single || in_double) *open = part;
    const char quote = part.empty() ? '\0' : part.front();
    if ((quote == '\'' || quote == '"') && part.size() > 1 && part.back() == quote)
      part = part.substr(1, part.size() - 2);
    parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

class Taker {
 public:
  Taker(const Settings& options, const SubmitEnvironment& from, contract::FieldErrors* errors)
      : options_(options), from_(from), errors_(errors) {}

  TakenEnvironment Take() {
    TakeExport();
    TakeLogin();
    TakeLimits();
    // Slurm's own mark for it.
    if (taken_.login_seconds > 0) taken_.variables["SLURM_GET_USER_ENV"] = "1";
    for (const std::string& name : stay_) {
      if (!taken_.variables.contains(name)) taken_.stay.push_back(name);
    }
    CheckSize();
    return std::move(taken_);
  }

 private:
  // Returns the shell's own variables; with a file it is as if there were none.
  const std::map<std::string, std::string>& shell() const {
    static const std::map<std::string, std::string> nothing;
    return from_.file.has_value() ? nothing : from_.variables;
  }

  void TakeExport() {
    const Setting* given = options_.Find("export");
    const std::string value = given == nullptr ? "ALL" : given->value;
    const bool is_none = absl::EqualsIgnoreCase(value, "NONE");
    const bool is_nil = absl::EqualsIgnoreCase(value, "NIL");
    if (from_.file.has_value() && !is_none && !is_nil) {
      for (const auto& [name, text] : *from_.file) Name(name, text);
    }
    if (absl::EqualsIgnoreCase(value, "ALL")) return TakeAll();
    if (!is_none && !is_nil) TakeList(*given);
    if (!is_nil) taken_.login_seconds = kLoginSeconds;
    for (const auto& [name, text] : shell()) {
      if (name.starts_with("SLURM_")) Carry(name, text);
    }
    // sbatch tells srun in the script.
    if (!from_.file.has_value()) taken_.variables["SLURM_EXPORT_ENV"] = value;
  }

  void TakeAll() {
    for (const auto& [name, value] : shell()) Carry(name, value);
  }

  void TakeList(const Setting& given) {
    std::string open;
    for (const std::string& one : SplitExport(given.value, &open)) {
      const size_t equals = one.find('=');
      if (absl::EqualsIgnoreCase(one, "ALL")) {
        TakeAll();
      } else if (equals != one.npos) {
        Name(one.substr(0, equals), one.substr(equals + 1));
      } else if (const auto found = shell().find(one); found != shell().end()) {
        Name(found->first, found->second);
      }
    }
    if (!open.empty()) {
      AddUnreadable(given, fmt::format("close the quote in {}", Quoted(open)), errors_);
    }
  }

  // Carries a variable that nobody asked for by name.
  void Carry(const std::string& name, const std::string& value) {
    if (!contract::MayBeSet(name, value)) {
      if (std::find(taken_.nameless.begin(), taken_.nameless.end(), name) == taken_.nameless.end())
        taken_.nameless.push_back(name);
    } else if (contract::IsOfTheRun(name)) {
      return;
    } else if (IsListed(name, from_.leave_behind) ||
               (contract::IsVariableName(name) && LooksLikeCredential(name, value))) {
      stay_.insert(name);
    } else {
      taken_.variables[name] = value;
    }
  }

  void Name(const std::string& name, const std::string& value) {
    if (!contract::MayBeSet(name, value)) {
      errors_->Add(
          "--export",
          fmt::format("{} is not a variable's name; use [A-Za-z_][A-Za-z0-9_]*", Quoted(name)));
      return;
    }
    taken_.variables[name] = value;
    if (contract::IsVariableName(name)) taken_.named.insert(name);
  }

  // "--get-user-env=10L": seconds and the mode of su.
  void TakeLogin() {
    const Setting* given = options_.Find("get-user-env");
    if (given == nullptr) return;
    std::string_view text = given->value;
    const bool is_login = text.ends_with('L') || text.ends_with('l');
    if (is_login) text.remove_suffix(1);
    const auto seconds =
        text.empty() ? std::optional(kLoginSeconds) : contract::ParseNumber<int64_t>(text);
    if (!seconds.has_value() || *seconds < 1 || *seconds > kMaxLoginSeconds) {
      return AddUnreadable(*given,
                           fmt::format("use 1 to {} seconds, with L behind or not; a login "
                                       "environment (L) is the only one that is made",
                                       kMaxLoginSeconds),
                           errors_);
    }
    const Setting* exported = options_.Find("export");
    // sbatch ignores --get-user-env then.
    if (exported == nullptr || !absl::EqualsIgnoreCase(exported->value, "NIL"))
      taken_.login_seconds = *seconds;
  }

  // Takes the limits, as the variables by which sbatch hands them to the node; no script finds
  // these.
  void TakeLimits() {
    if (from_.limits.umask.has_value())
      taken_.variables["SLURM_UMASK"] = fmt::format("{:04o}", *from_.limits.umask);
    const Setting* given = options_.Find("propagate");
    std::string_view names = "ALL";
    if (given != nullptr && !given->value.empty()) names = given->value;
    if (names == "NONE") return;
    std::set<std::string_view> chosen;
    for (std::string_view name : names == "ALL" ? Names() : contract::Split(names, ',')) {
      constexpr std::string_view kPrefix = "RLIMIT_";
      if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
      if (std::find(kLimits.begin(), kLimits.end(), name) == kLimits.end()) {
        return AddUnreadable(
            *given, fmt::format("use ALL, NONE or names of {}", fmt::join(kLimits, ", ")), errors_);
      }
      chosen.insert(name);
    }
    for (const auto& [name, value] : from_.limits.soft) {
      // A U in front says that the user has asked for it.
      if (chosen.contains(name))
        taken_.variables["SLURM_RLIMIT_" + name] =
            fmt::format("{}{}", given == nullptr ? "" : "U", value);
    }
  }

  static std::vector<std::string_view> Names() { return {kLimits.begin(), kLimits.end()}; }

  void CheckSize() {
    const size_t bytes = contract::FormatShellFile(taken_.variables).size();
    if (bytes <= contract::kMaxShellBytes) return;
    std::vector<std::pair<size_t, std::string>> sizes;
    for (const auto& [name, value] : taken_.variables) sizes.emplace_back(value.size(), name);
    std::sort(sizes.rbegin(), sizes.rend());
    std::vector<std::string> largest;
    for (size_t i = 0; i < std::min(sizes.size(), kMaxLargest); ++i)
      largest.push_back(fmt::format("{} ({} bytes)", sizes[i].second, sizes[i].first));
    errors_->Add("--export",
                 fmt::format("the variables of your shell have {} bytes, and {} are the most that "
                             "travel with a job; name those that the script needs, or unset the "
                             "largest: {}",
                             bytes, contract::kMaxShellBytes, fmt::join(largest, ", ")));
  }

  const Settings& options_;
  const SubmitEnvironment& from_;
  contract::FieldErrors* const errors_;
  TakenEnvironment taken_;
  std::set<std::string> stay_;
};

}  // namespace

TakenEnvironment TakeEnvironment(const Settings& options, const SubmitEnvironment& from,
                                 contract::FieldErrors* errors) {
  return Taker(options, from, errors).Take();
}

absl::StatusOr<std::map<std::string, std::string>> ReadExportFile(std::string_view text) {
  std::string whole(text);
  // sbatch takes the last one without its NUL byte, too.
  if (!whole.empty() && whole.back() != '\0') whole += '\0';
  return contract::ParseShellFile(whole);
}

// Returns the value of --export without credentials, for people to see.
std::string Presentable(std::string_view exported) {
  std::vector<std::string_view> parts;
  for (const std::string_view each : contract::Split(exported, ',')) {
    const size_t equals = each.find('=');
    const std::string_view name = each.substr(0, equals);
    const bool is_secret =
        equals != each.npos && LooksLikeCredential(name, each.substr(equals + 1));
    parts.push_back(is_secret ? name : each);
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string StaysBehind(const TakenEnvironment& taken, const Settings& options) {
  std::string text;
  if (!taken.stay.empty()) {
    const Setting* given = options.Find("export");
    text = fmt::format(
        "these variables stay here, because they look like credentials or sbatch.leave_behind "
        "lists them: {}; to take them along, name them: --export={},{}",
        fmt::join(taken.stay, ", "), given == nullptr ? "ALL" : Presentable(given->value),
        fmt::join(taken.stay, ","));
  }
  if (!taken.nameless.empty()) {
    text += fmt::format("{}these variables stay here, because no shell can set them: {}",
                        text.empty() ? "" : "; ", fmt::join(taken.nameless, ", "));
  }
  return text;
}

}  // namespace muster::client::slurm
