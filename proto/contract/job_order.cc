#include "contract/job_order.h"

#include <tuple>
#include <utility>

#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/micros.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr std::pair<std::string_view, JobOrder::Field> kOrders[] = {
    {"id", JobOrder::Field::kId},
    {"create_time", JobOrder::Field::kId},  // jobs are numbered as they are created
    {"start_time", JobOrder::Field::kStartTime},
    {"end_time", JobOrder::Field::kEndTime},
    {"priority", JobOrder::Field::kPriority},
    {"name", JobOrder::Field::kName},
};

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return "";
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

}  // namespace

absl::StatusOr<JobOrder> ParseJobOrder(std::string_view text) {
  const std::string_view whole = Trimmed(text);
  if (whole.empty()) return JobOrder{};
  const size_t space = whole.find(' ');
  const std::string_view name = whole.substr(0, space);
  const std::string_view rest = space == whole.npos ? "" : Trimmed(whole.substr(space));
  for (const auto& [known, field] : kOrders) {
    if (name == known && (rest.empty() || rest == "desc")) {
      return JobOrder{.field = field, .descending = !rest.empty()};
    }
  }
  return BadField(
      "order_by",
      fmt::format("cannot order by {}; use id, create_time, start_time, end_time, priority "
                  "or name, with \"desc\" behind it for the reverse",
                  Quoted(text)));
}

JobPlace PlaceOf(const v1::Job& job, const JobOrder& order) {
  JobPlace place;
  place.id = job.id();
  switch (order.field) {
    case JobOrder::Field::kId:
      break;
    case JobOrder::Field::kStartTime:
      place.is_absent = !job.has_start_time();
      if (!place.is_absent) place.number = Micros(job.start_time());
      break;
    case JobOrder::Field::kEndTime:
      place.is_absent = !job.has_end_time();
      if (!place.is_absent) place.number = Micros(job.end_time());
      break;
    case JobOrder::Field::kPriority:
      place.number = job.priority();
      break;
    case JobOrder::Field::kName:
      place.text = job.name();
      break;
  }
  return place;
}

bool ComesBefore(const JobPlace& a, const JobPlace& b, const JobOrder& order) {
  if (a.is_absent != b.is_absent) return b.is_absent;
  const auto key = [](const JobPlace& place) {
    return std::tie(place.number, place.text, place.id);
  };
  return order.descending ? key(b) < key(a) : key(a) < key(b);
}

}  // namespace muster::contract
