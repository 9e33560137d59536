#include "clients/cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "clients/cli/exit_code.h"
#include "contract/characters.h"

namespace muster::cli {
namespace {

// Text in which nothing acts on the formatter: no request at the beginning of a line, no escape,
// and dashes that can be copied.
std::string ManText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_first = out.empty() || out.back() == '\n';
    if (is_first && (c == '.' || c == '\'')) out += "\\&";
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '^':
        out += "\\(ha";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Words(const CLI::App& app, std::string_view between) {
  if (app.get_parent() == nullptr) return app.get_name();
  return Words(*app.get_parent(), between) + std::string(between) + app.get_name();
}

std::string Bold(std::string_view text) { return fmt::format("\\fB{}\\fR", ManText(text)); }
std::string Italic(std::string_view text) { return fmt::format("\\fI{}\\fR", ManText(text)); }

// "FILE...", as the usage has it.
std::string PositionalText(const CLI::Option& option) {
  const std::string name =
      Italic(option.get_name(true)) + (option.get_expected_max() > 1 ? " ..." : "");
  return option.get_required() ? name : fmt::format("[{}]", name);
}

std::string Synopsis(const CLI::App& app) {
  std::string text = Bold(Words(app, " "));
  text += " [" + Italic("OPTION") + " ...]";
  if (!app.get_subcommands({}).empty()) text += " " + Italic("VERB");
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) text += " " + PositionalText(*option);
  }
  if (app.get_name() == "run" || app.get_name() == "plan")
    text += " [" + Bold("--") + " " + Italic("CMD") + " [" + Italic("ARG") + " ...]]";
  return text;
}

std::string OptionHeading(const CLI::Option& option) {
  std::string text;
  for (const std::string& name : option.get_snames())
    text += (text.empty() ? "" : ", ") + Bold("-" + name);
  for (const std::string& name : option.get_lnames())
    text += (text.empty() ? "" : ", ") + Bold("--" + name);
  if (text.empty()) return Italic(option.get_name(true));
  if (!option.get_type_name().empty()) text += " " + Italic(option.get_type_name());
  return text;
}

void AppendOptions(const CLI::App& app, std::string* page) {
  *page += ".SH OPTIONS\n";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    *page += fmt::format(".TP\n{}\n{}", OptionHeading(*option), ManText(option->get_description()));
    if (const std::string value = option->get_default_str(); !value.empty())
      *page += fmt::format(" [{}]", ManText(value));
    *page += '\n';
  }
}

void AppendVerbs(const CLI::App& app, std::string* page) {
  const auto verbs = app.get_subcommands({});
  if (verbs.empty()) return;
  *page += ".SH VERBS\n";
  for (const CLI::App* verb : verbs) {
    std::string names = Bold(verb->get_name());
    for (const std::string& alias : verb->get_aliases()) names += ", " + Bold(alias);
    *page += fmt::format(".TP\n{}\n{}\n", names, ManText(verb->get_description()));
  }
}

// The help below the options: lines with blanks before them stay as they are.
void AppendFooter(const CLI::App& app, std::string* page) {
  const std::string footer = app.get_footer();
  std::string_view rest = footer;
  bool is_table = false;
  bool is_new = true;
  *page += ".SH NOTES\n";
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const bool is_indented = line.starts_with(' ');
    if (is_indented != is_table) *page += is_indented ? ".PP\n.nf\n" : ".fi\n";
    if (is_indented != is_table && !is_indented) is_new = true;
    is_table = is_indented;
    if (line.empty()) {
      is_new = true;
      continue;
    }
    if (!is_indented && is_new) *page += ".PP\n";
    is_new = false;
    *page += ManText(line) + "\n";
  }
  if (is_table) *page += ".fi\n";
}

void AppendSeeAlso(const CLI::App& app, std::string* page) {
  *page += ".SH SEE ALSO\n";
  std::vector<std::string> pages;
  if (app.get_parent() != nullptr) pages.push_back(Words(*app.get_parent(), "-"));
  for (const CLI::App* verb : app.get_subcommands({})) pages.push_back(Words(*verb, "-"));
  for (size_t i = 0; i < pages.size(); ++i)
    *page += fmt::format(".BR {} (1){}\n", ManText(pages[i]), i + 1 < pages.size() ? " ," : "");
}

const CLI::App* FindVerb(const CLI::App* app, std::string_view name) {
  for (const CLI::App* verb : app->get_subcommands({})) {
    if (verb->check_name(std::string(name))) return verb;
  }
  return nullptr;
}

bool WriteAll(const CLI::App& app, const std::string& directory) {
  const std::string path = fmt::format("{}/{}.1", directory, Words(app, "-"));
  std::ofstream file(path);
  file << ManPage(app);
  file.close();
  if (!file) {
    fmt::print(stderr, "muster: cannot write {}: {}\n", contract::Quoted(path), strerror(errno));
    return false;
  }
  const auto verbs = app.get_subcommands({});
  return std::all_of(verbs.begin(), verbs.end(),
                     [&directory](const CLI::App* verb) { return WriteAll(*verb, directory); });
}

}  // namespace

std::string ManPage(const CLI::App& app) {
  std::string title = Words(app, "-");
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  // The pages of a version are the same whenever they are made, so that no date is in them.
  std::string page = fmt::format(".TH {} 1 \"\" \"Muster {}\" \"User Commands\"\n", ManText(title),
                                 MUSTER_VERSION);
  page += fmt::format(".SH NAME\n{} \\- {}\n", ManText(Words(app, "-")),
                      ManText(app.get_description()));
  page += fmt::format(".SH SYNOPSIS\n{}\n", Synopsis(app));
  AppendVerbs(app, &page);
  AppendOptions(app, &page);
  AppendFooter(app, &page);
  AppendSeeAlso(app, &page);
  return page;
}

int ManPages(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "--man-pages") return WriteAll(app, words[1]) ? kOk : kError;
  const CLI::App* verb = &app;
  for (const std::string& word : words) {
    if (word == "--man") continue;
    verb = FindVerb(verb, word);
    if (verb == nullptr) {
      fmt::print(stderr, "muster: {} is not a verb; muster help lists them\n",
                 contract::Quoted(word));
      return kUsage;
    }
  }
  fmt::print("{}", ManPage(*verb));
  return kOk;
}

}  // namespace muster::cli
