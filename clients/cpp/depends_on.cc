#include "clients/cpp/depends_on.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "clients/cpp/message_reader.h"
#include "contract/characters.h"
#include "contract/parts.h"

namespace muster::client {
namespace {

class DependsOnReader {
 public:
  DependsOnReader(YamlReader* in, const std::vector<v1::JobSpec>& earlier, v1::JobSpec* spec)
      : in_(*in), earlier_(earlier), spec_(*spec) {}

  void Read(const YamlValue& value) {
    if (!value.node.IsSequence()) return One(value);
    in_.List(value, [this](const YamlValue& item) { One(item); });
  }

 private:
  void One(const YamlValue& item) {
    const std::string field = fmt::format("depends_on[{}]", spec_.depends_on_size());
    v1::JobDependency* const one = spec_.add_depends_on();
    if (!item.node.IsMap()) return Job(item, field, one);
    // The fields besides `job` are those of the API.
    bool is_named = false;
    const MessageReader reader(
        &in_, {{"muster.v1.JobDependency.job_id", {"job|job_id", [&](const YamlValue& v) {
                                                     is_named = true;
                                                     Job(v, field, one);
                                                   }}}});
    reader.Read(item, one);
    if (!is_named && one->request() == 0)
      in_.Problem(item, "names no job; write its number, as in {job: 12, outcome: ended}");
  }

  void Job(const YamlValue& value, const std::string& field, v1::JobDependency* one) {
    in_.StandsFor(value, field + ".job_id");
    in_.StandsFor(value, field + ".request");
    std::string text;
    if (!in_.Text(value, &text)) return;
    if (const auto number = contract::ParseNumber<uint64_t>(text); number && *number > 0)
      return one->set_job_id(*number);
    const std::optional<uint32_t> place = Place(value, text);
    if (place) one->set_request(*place);
  }

  // The place of the earlier document with this name, from 1.
  std::optional<uint32_t> Place(const YamlValue& value, const std::string& name) {
    std::optional<uint32_t> place;
    for (size_t i = 0; i < earlier_.size(); ++i) {
      if (earlier_[i].name() != name || name.empty()) continue;
      if (place) {
        in_.Problem(value, fmt::format("{} is the name of several documents before this one; give "
                                       "each a name of its own",
                                       contract::Quoted(name)));
        return std::nullopt;
      }
      place = static_cast<uint32_t>(i) + 1;
    }
    if (!place) {
      in_.Problem(value, fmt::format("{} is neither the number of a job nor the name of a document "
                                     "before this one",
                                     contract::Quoted(name)));
    }
    return place;
  }

  YamlReader& in_;
  const std::vector<v1::JobSpec>& earlier_;
  v1::JobSpec& spec_;
};

}  // namespace

void ReadDependsOn(YamlReader* in, const YamlValue& value, const std::vector<v1::JobSpec>& earlier,
                   v1::JobSpec* spec) {
  DependsOnReader(in, earlier, spec).Read(value);
}

void DependOnLast(const std::vector<v1::JobSpec>& earlier, v1::JobSpec* spec) {
  if (earlier.empty()) return;
  v1::JobDependency* const one = spec->add_depends_on();
  one->set_request(static_cast<uint32_t>(earlier.size()));
  one->set_outcome(v1::JOB_OUTCOME_SUCCEEDED);
}

}  // namespace muster::client
