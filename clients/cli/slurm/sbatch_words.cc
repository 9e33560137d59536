#include "clients/cli/slurm/sbatch_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "contract/characters.h"

namespace muster::cli {
namespace {

// A name that begins with another one stands before it.
constexpr std::pair<std::string_view, std::string_view> kSbatchFlags[] = {
    {"working_directory", "--chdir"},
    {"time_limit", "--time"},
    {"command.script_arguments", "the script's arguments"},
    {"command.script", "the script"},
    {"resources.cpu_millis", "--cpus-per-task"},
    {"resources.cpus", "--cpus-per-task"},
    {"resources.memory_bytes", "--mem"},
    {"resources.memory", "--mem"},
    {"resources.gpus", "--gres"},
    {"placement.clusters", "--clusters"},
    {"placement.pool", "--partition"},
    {"slurm.batch_script.output", "--output"},
    {"slurm.batch_script.error", "--error"},
    {"slurm.batch_script.input", "--input"},
    {"slurm.batch_script.append", "--open-mode"},
    {"slurm.batch_script.environment", "--export"},
    {"slurm.batch_script", "the script"},
    {"slurm.partition", "--partition"},
    {"slurm.account", "--account"},
    {"slurm.qos", "--qos"},
    {"slurm.dependency", "--dependency"},
    {"slurm.mail_type", "--mail-type"},
    {"slurm.mail_user", "--mail-user"},
    {"slurm.reservation", "--reservation"},
    {"slurm.constraint", "--constraint"},
    {"slurm.nodelist", "--nodelist"},
    {"slurm.tasks_per_node", "--ntasks-per-node"},
    {"slurm.exclusive", "--exclusive"},
    {"slurm.exclude", "--exclude"},
    {"slurm.requeue", "--requeue"},
    {"slurm.comment", "--comment"},
    {"slurm.licenses", "--licenses"},
    {"slurm.signal", "--signal"},
    {"slurm.gres", "--gres"},
    {"slurm.nice", "--nice"},
    {"slurm.container.env", "--container-env"},
    {"slurm.container.name", "--container-name"},
    {"slurm.extra_options", "the other options"},
    {"name", "--job-name"},
    {"nodes", "--nodes"},
    {"image", "--container-image"},
    {"mounts", "--container-mounts"},
    {"env", "--export"},
};

bool IsOfName(char c) {
  return contract::IsLetter(c) || contract::IsDigit(c) || c == '_' || c == '-' || c == '/';
}

// "nodes" and the like are also words of sentences.
bool IsPlainWord(std::string_view name) { return name.find_first_of("._") == name.npos; }

// How many bytes of "[3]" and ".type" go on from the field's name.
size_t InsideOf(std::string_view rest) {
  size_t at = 0;
  while (at < rest.size()) {
    const size_t end = rest[at] == '[' ? rest.find(']', at) : rest.npos;
    if (end != rest.npos) {
      at = end + 1;
    } else if (rest[at] == '.' && at + 1 < rest.size() && contract::IsLowerLetter(rest[at + 1])) {
      for (++at; at < rest.size() && IsOfName(rest[at]);) ++at;
    } else {
      break;
    }
  }
  return at;
}

// How many bytes "spec." and "requests[3].spec." have at the text's beginning.
size_t PrefixOf(std::string_view text) {
  constexpr std::string_view kSpec = "spec.";
  constexpr std::string_view kRequests = "requests[";
  const size_t close = text.starts_with(kRequests) ? text.find("].") : text.npos;
  const size_t spec = close == text.npos ? 0 : close + 2;
  return text.substr(spec).starts_with(kSpec) ? spec + kSpec.size() : 0;
}

// A field that a text begins with.
struct Found {
  std::string_view option;  // empty: it begins with none
  size_t bytes = 0;
};

// `before` is the text up to there, of one line.
Found FindField(std::string_view before, std::string_view text) {
  const size_t prefix = PrefixOf(text);
  for (const auto& [name, option] : kSbatchFlags) {
    if (!text.substr(prefix).starts_with(name)) continue;
    const size_t end = prefix + name.size();
    const size_t bytes = end + InsideOf(text.substr(end));
    const char next = bytes < text.size() ? text[bytes] : '\0';
    if (IsOfName(next)) continue;
    const bool is_in_parentheses = before.ends_with('(') && next == ')';
    const bool begins_line = (before.empty() || before == "muster: ") && next == ':';
    if (IsPlainWord(name) && prefix == 0 && !is_in_parentheses && !begins_line) continue;
    return {option, bytes};
  }
  return {};
}

// Whether the text ends in "--time (", or in the option and " (".
bool EndsInOpenOption(std::string_view text, std::string_view option) {
  constexpr std::string_view kOpen = " (";
  if (!text.ends_with(kOpen)) return false;
  text.remove_suffix(kOpen.size());
  const size_t blank = text.rfind(' ');
  const std::string_view word = text.substr(blank == text.npos ? 0 : blank + 1);
  return word.starts_with("--") || text.ends_with(option);
}

// How many bytes after the option name it once more: as in "--time (--time)" and "--qos, --qos".
size_t RepeatOf(std::string_view option, std::string_view rest) {
  const std::string in_parentheses = fmt::format(" ({})", option);
  if (rest.starts_with(in_parentheses)) return in_parentheses.size();
  const std::string behind_comma = fmt::format(", {}", option);
  return rest.starts_with(behind_comma) ? behind_comma.size() : 0;
}

}  // namespace

FieldFlags SbatchFlags() { return kSbatchFlags; }

std::string InSbatchsWords(std::string_view text) {
  std::string out;
  size_t line = 0;  // where it begins
  bool is_quoted = false;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' && (at == 0 || text[at - 1] != '\\')) is_quoted = !is_quoted;
    const bool is_inside = at > line && (IsOfName(text[at - 1]) || text[at - 1] == '.');
    const Found found =
        is_quoted || is_inside ? Found() : FindField(text.substr(line, at - line), text.substr(at));
    if (found.option.empty()) {
      out += c;
      ++at;
      if (c == '\n') {
        line = at;
        is_quoted = false;
      }
      continue;
    }
    at += found.bytes;
    // "--time (time_limit)" has the option already.
    if (EndsInOpenOption(out, found.option) && at < text.size() && text[at] == ')') {
      out.resize(out.size() - 2);
      ++at;
      continue;
    }
    // "--clusters: placement.clusters names" begins with the option twice.
    const std::string begun = fmt::format("{}: ", found.option);
    if (out.ends_with(begun)) out.resize(out.size() - begun.size());
    out += found.option;
    at += RepeatOf(found.option, text.substr(at));
    const std::string explained = fmt::format(" ({}; ", found.option);
    if (!text.substr(at).starts_with(explained)) continue;
    out += " (";
    at += explained.size();
  }
  return out;
}

std::string InUsersWords(const Invocation& call, std::string text) {
  return call.verb == Verb::kSbatch ? InSbatchsWords(text) : std::move(text);
}

}  // namespace muster::cli
