#include "clients/cpp/yaml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>
#include <utility>

#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/job_file_names.h"
#include "contract/nearest.h"
#include "contract/text.h"

namespace muster::client {
namespace {

std::string FormOf(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a mapping";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      return contract::Quoted(node.Scalar());
    default:
      return "nothing";
  }
}

// At most so many bytes of a name that is no field are told: a file that is no job file may hold
// anything.
constexpr size_t kMaxNameBytes = 40;

std::string Shortened(std::string_view name) {
  if (name.size() <= kMaxNameBytes) return std::string(name);
  size_t end = kMaxNameBytes;
  while ((static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
  return fmt::format("{}...", name.substr(0, end));
}

std::string Join(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::vector<std::string_view> SplitNames(std::string_view names) {
  std::vector<std::string_view> result;
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find('|', at), names.size());
    result.push_back(names.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

std::vector<std::string_view> NamesOf(const std::map<std::string_view, std::string_view>& hints) {
  std::vector<std::string_view> names;
  for (const auto& [name, hint] : hints) names.push_back(name);
  return names;
}

// Returns the place of the first byte that no UTF-8 text has; the size of the text if there is
// none.
size_t FindNotText(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && text[at] != '\0') {
    const size_t bytes = contract::CharacterBytes(text.substr(at));
    if (bytes == 0) break;
    at += bytes;
  }
  return at;
}

std::string PlaceText(std::string_view file, const YAML::Mark& mark) {
  return fmt::format("{}:{}:{}", file, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1);
}

// Returns whether the field is the other one, or inside of it.
bool IsWithin(std::string_view path, std::string_view outer) {
  if (!path.starts_with(outer)) return false;
  const std::string_view rest = path.substr(outer.size());
  return outer.empty() || rest.empty() || rest.front() == '.' || rest.front() == '[';
}

YAML::Mark MarkOf(const YamlValue& value) { return value.place.value_or(value.node.Mark()); }

// Returns the place of an empty value of a mapping: behind its name, as far as people are
// concerned.
std::optional<YAML::Mark> PlaceOfEmpty(const YAML::Node& value, const YAML::Mark& key) {
  if (!value.IsNull() || value.Mark().line == key.line) return std::nullopt;
  return key;
}

// Returns a line without its comment and the blanks at its end.
std::string_view WithoutComment(std::string_view line) {
  for (size_t hash = line.find('#'); hash != line.npos; hash = line.find('#', hash + 1)) {
    if (hash > 0 && line[hash - 1] != ' ' && line[hash - 1] != '\t') continue;
    line = line.substr(0, hash);
    break;
  }
  return line.substr(0, line.find_last_not_of(" \t\r") + 1);
}

// Returns the place of the dash of an empty item: between it and the node's mark are blanks and
// comments alone.
std::optional<YAML::Mark> PlaceOfEmptyItem(std::string_view text, const YAML::Node& item) {
  const YAML::Mark mark = item.Mark();
  if (!item.IsNull() || mark.pos < 0 || static_cast<size_t>(mark.pos) > text.size()) {
    return std::nullopt;
  }
  text = text.substr(0, static_cast<size_t>(mark.pos));
  YAML::Mark place = mark;
  while (true) {
    const size_t begin = text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1;
    const std::string_view line = WithoutComment(text.substr(begin));
    place.column = static_cast<int>(line.size()) - 1;
    // A value that is written ("~") follows its dash on the same line.
    if (line.ends_with('-') && place.line < mark.line) return place;
    if (line.find_first_not_of(" \t") != line.npos || begin == 0) return std::nullopt;
    text = text.substr(0, begin - 1);
    --place.line;
  }
}

// Adds a hint about tabs, since yaml-cpp's message does not speak of them.
std::string_view TabHint(std::string_view text, int line) {
  for (int i = 0; i < line && !text.empty(); ++i) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  const std::string_view indent = text.substr(0, text.find_first_not_of(" \t"));
  const bool has_tab = indent.find('\t') != std::string_view::npos;
  return has_tab ? "; the line is indented with a tab, YAML wants blanks" : "";
}

// Ends the reading of a text in which yaml-cpp stands still. It takes some characters at the start
// of a document, a "," for one, for an empty document and does not pass them: it would make empty
// documents until the memory is used up.
class StandstillFinder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == last_) throw YAML::ParserException(mark, "nothing can begin like this");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int last_ = -1;
};

// Throws if the documents of the text have no end.
void CheckDocumentsEnd(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  StandstillFinder finder;
  while (parser.HandleNextDocument(finder)) {
  }
}

}  // namespace

absl::StatusOr<std::vector<YAML::Node>> LoadYaml(std::string_view file, std::string_view text,
                                                 size_t max_bytes) {
  if (text.size() > max_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("{}: has {} bytes, the limit is {}", file, text.size(), max_bytes));
  }
  if (const size_t bad = FindNotText(text); bad < text.size()) {
    const auto lines = std::count(text.begin(), text.begin() + bad, '\n');
    return absl::InvalidArgumentError(fmt::format("{}:{}: is not UTF-8 text (byte 0x{:02x})", file,
                                                  lines + 1,
                                                  static_cast<unsigned char>(text[bad])));
  }
  try {
    const std::string yaml(text);
    CheckDocumentsEnd(yaml);
    return YAML::LoadAll(yaml);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(fmt::format("{}:{}:{}: not valid YAML: {}{}", file,
                                                  error.mark.line + 1, error.mark.column + 1,
                                                  error.msg, TabHint(text, error.mark.line)));
  }
}

void YamlReader::ProblemAtMark(const YAML::Mark& mark, std::string_view path,
                               std::string_view message) {
  if (problems_.size() < kMaxKeptProblems) misread_.emplace_back(path);
  Note(mark, path, message);
}

void YamlReader::Note(const YAML::Mark& mark, std::string_view path, std::string_view message) {
  if (problems_.size() == kMaxKeptProblems) {
    ++unnamed_;
    return;
  }
  problems_.push_back({mark, fmt::format("{}: {}{}{}", PlaceText(file_, mark), path,
                                         path.empty() ? "" : ": ", message)});
}

// Returns whether a problem was noted of the field, of one inside of it, or of one around it.
bool YamlReader::IsMisread(std::string_view path) const {
  return std::any_of(misread_.begin(), misread_.end(), [path](std::string_view bad) {
    return IsWithin(path, bad) || IsWithin(bad, path);
  });
}

void YamlReader::BeginDocument() {
  misread_.clear();
  places_.clear();
}

void YamlReader::Problem(const YamlValue& value, std::string_view message) {
  ProblemAtMark(MarkOf(value), value.path, message);
}

void YamlReader::ProblemOf(const YamlValue& value, const absl::Status& status) {
  const auto bad_request = contract::GetBadRequest(status);
  if (!bad_request || bad_request->field_violations().empty()) {
    Problem(value, ToStd(status.message()));
    return;
  }
  for (const auto& violation : bad_request->field_violations()) {
    Problem(value, violation.description());
  }
}

void YamlReader::StandsFor(const YamlValue& value, std::string_view api_path) {
  places_.insert_or_assign(std::string(api_path), Place{MarkOf(value), value.path});
}

void YamlReader::ProblemAt(std::string_view api_path, std::string_view message) {
  std::string_view known = api_path;
  while (!known.empty() && places_.find(known) == places_.end()) {
    const size_t end = known.find_last_of(".[");
    known = end == std::string_view::npos ? std::string_view() : known.substr(0, end);
  }
  const auto place = places_.find(known);
  // A field that is not in the file may be one that could not be read.
  if (!misread_.empty() && (known.empty() || IsMisread(place->second.path))) return;
  const std::string name = contract::JobFileName(api_path);
  if (place == places_.end()) return Note(YAML::Mark(), name, message);
  const bool is_exact = known.size() == api_path.size();
  const bool has_own_name = !known.empty() && (is_exact || place->second.path != known);
  Note(place->second.mark, has_own_name ? place->second.path : name, message);
}

std::map<std::string, std::string, std::less<>> YamlReader::Places() const {
  std::map<std::string, std::string, std::less<>> places;
  for (const auto& [path, place] : places_) places.emplace(path, PlaceText(file_, place.mark));
  return places;
}

absl::Status YamlReader::status() const {
  if (problems_.empty()) return absl::OkStatus();
  std::vector<Noted> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Noted& a, const Noted& b) {
    return std::pair(a.mark.line, a.mark.column) < std::pair(b.mark.line, b.mark.column);
  });
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min(sorted.size(), kMaxYamlProblems); ++i)
    lines.push_back(std::move(sorted[i].text));
  const size_t left_out = sorted.size() - lines.size() + unnamed_;
  if (left_out > 0) lines.push_back(fmt::format("... and {} more", left_out));
  return absl::InvalidArgumentError(fmt::format("{}", fmt::join(lines, "\n")));
}

bool YamlReader::IsMapping(const YamlValue& value) {
  if (value.node.IsMap()) return true;
  Problem(value, fmt::format("expected a mapping (name: value), found {}", FormOf(value.node)));
  return false;
}

// Puts the fields of the mappings under "<<" into the mapping itself, which keeps its own and, of
// several, those of the first.
void YamlReader::Merge(YAML::Node node, const std::string& path, int depth) {
  std::vector<YAML::Node> sources;  // filled by copies, as to assign a node changes the old one
  std::set<std::string> names;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) continue;
    names.insert(entry.first.Scalar());
    if (entry.first.Scalar() != "<<" || entry.first.Tag() != "?") continue;
    if (!entry.second.IsSequence()) sources.push_back(entry.second);
    for (const YAML::Node& source : entry.second) {
      if (entry.second.IsSequence()) sources.push_back(source);
    }
  }
  if (sources.empty()) return;
  node.remove(std::string("<<"));
  for (const YAML::Node& source : sources) {
    if (!source.IsMap() || depth == kMaxMergeDepth) {
      return ProblemAtMark(source.Mark(), Join(path, "<<"),
                           source.IsMap() ? "merges mappings too deeply"
                                          : "expected a mapping, or a list of mappings");
    }
    Merge(source, path, depth + 1);
    for (const auto& entry : source) {
      if (entry.first.IsScalar() && names.insert(entry.first.Scalar()).second) {
        node.force_insert(entry.first, entry.second);
      }
    }
  }
}

bool YamlReader::CollectKeys(const YamlValue& value, std::map<std::string, Found>* found) {
  if (!IsMapping(value)) return false;
  if (merge_keys_ == MergeKeys::kRead) Merge(value.node, value.path, 0);
  for (const auto& entry : value.node) {
    if (!entry.first.IsScalar()) {
      ProblemAtMark(entry.first.Mark(), value.path,
                    fmt::format("expected a name, found {}", FormOf(entry.first)));
      continue;
    }
    const std::string& key = entry.first.Scalar();
    const YamlValue inner{entry.second, Join(value.path, key),
                          PlaceOfEmpty(entry.second, entry.first.Mark())};
    if (!found->emplace(key, Found{inner, entry.first.Mark()}).second) {
      ProblemAtMark(entry.first.Mark(), inner.path, "is given twice");
    }
  }
  return true;
}

void YamlReader::Mapping(const YamlValue& value, const std::vector<Field>& fields,
                         const std::map<std::string_view, std::string_view>& hints) {
  std::map<std::string, Found> found;
  if (!CollectKeys(value, &found)) return;
  std::vector<std::string_view> known;
  std::vector<std::string_view> listed;
  for (const Field& field : fields) {
    std::string_view given;
    std::vector<std::string_view> names = SplitNames(field.names);
    known.insert(known.end(), names.begin(), names.end());
    if (field.is_listed) listed.insert(listed.end(), names.begin(), names.end());
    const std::string_view last_name = names.back();
    if (!field.json_name.empty() && field.json_name != last_name) names.push_back(field.json_name);
    for (std::string_view name : names) {
      const auto it = found.find(std::string(name));
      if (it == found.end()) continue;
      Found entry = it->second;
      found.erase(it);
      if (!given.empty()) {
        ProblemAtMark(entry.key_mark, entry.value.path,
                      fmt::format("means the same as \"{}\", which is given too", given));
        continue;
      }
      given = name;
      if (name == field.json_name) entry.value.path = Join(value.path, last_name);
      StandsFor(entry.value, entry.value.path);
      field.read(entry.value);
    }
  }
  bool is_list_told = false;
  for (const auto& [name, entry] : found) {
    std::string message = "no such field";
    const auto hint = hints.find(name);
    if (hint != hints.end()) {
      message += fmt::format("; {}", hint->second);
    } else if (const std::string_view nearest = contract::Nearest(name, known); !nearest.empty()) {
      message += fmt::format("; did you mean \"{}\"?", nearest);
    } else if (const std::string_view tried = contract::Nearest(name, NamesOf(hints));
               !tried.empty()) {
      message += fmt::format("; {}", hints.at(tried));
    } else if (!is_list_told) {
      is_list_told = true;
      message += fmt::format("; known here: {}", fmt::join(listed, ", "));
    }
    ProblemAtMark(entry.key_mark, Join(value.path, Shortened(name)), message);
  }
}

void YamlReader::Entries(
    const YamlValue& value,
    const std::function<void(const std::string& key, const YamlValue&)>& read) {
  std::map<std::string, Found> found;
  if (!CollectKeys(value, &found)) return;
  for (const auto& [key, entry] : found) {
    // The name that the contract's checks have for it.
    const std::string name = fmt::format("{}[{}]", value.path, contract::Quoted(key));
    StandsFor(YamlValue{entry.value.node, name, entry.value.place}, name);
    read(key, entry.value);
  }
}

void YamlReader::List(const YamlValue& value, const std::function<void(const YamlValue&)>& read) {
  if (!value.node.IsSequence()) {
    Problem(value, fmt::format("expected a list, found {}", FormOf(value.node)));
    return;
  }
  size_t index = 0;
  for (const YAML::Node& item : value.node) {
    const YamlValue inner{item, fmt::format("{}[{}]", value.path, index++),
                          PlaceOfEmptyItem(text_, item)};
    StandsFor(inner, inner.path);
    read(inner);
  }
}

bool YamlReader::Text(const YamlValue& value, std::string* out) {
  if (value.node.IsScalar()) {
    *out = value.node.Scalar();
    return true;
  }
  const std::string_view remedy = value.node.IsNull() ? "; write \"\" for an empty text" : "";
  Problem(value, fmt::format("expected a text, found {}{}", FormOf(value.node), remedy));
  return false;
}

bool YamlReader::Integer(const YamlValue& value, int64_t min, int64_t max, int64_t* out) {
  std::string text;
  if (value.node.IsScalar()) text = value.node.Scalar();
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, *out);
  if (!text.empty() && error == std::errc() && end == last && *out >= min && *out <= max) {
    return true;
  }
  Problem(value, fmt::format("expected a whole number from {} to {}, found {}", min, max,
                             FormOf(value.node)));
  return false;
}

bool YamlReader::Bool(const YamlValue& value, bool* out) {
  const std::string text = value.node.IsScalar() ? value.node.Scalar() : "";
  if (text != "true" && text != "false") {
    Problem(value, fmt::format("expected true or false, found {}", FormOf(value.node)));
    return false;
  }
  *out = text == "true";
  return true;
}

}  // namespace muster::client
