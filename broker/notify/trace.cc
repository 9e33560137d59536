#include "broker/notify/trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "contract/states.h"
#include "digest/sha256.h"

// https://opentelemetry.io/docs/specs/otlp/#otlphttp has the form: 64-bit numbers are texts, names
// of traces and spans are hexadecimal.
namespace muster::notify {
namespace {

using Json = nlohmann::ordered_json;
using google::protobuf::Timestamp;

constexpr size_t kTraceIdDigits = 32;
constexpr size_t kSpanIdDigits = 16;
constexpr int kInternal = 1;  // the kind of a span
constexpr int kOk = 1;        // the code of a status
constexpr int kError = 2;

std::string Nanos(const Timestamp& time) {
  constexpr int64_t kNanosOfASecond = 1'000'000'000;
  return fmt::format("{}", time.seconds() * kNanosOfASecond + time.nanos());
}

Json Attribute(std::string_view key, std::string_view text) {
  return {{"key", key}, {"value", {{"stringValue", text}}}};
}

Json Attribute(std::string_view key, int64_t number) {
  return {{"key", key}, {"value", {{"intValue", fmt::format("{}", number)}}}};
}

// Adds the text, if there is one.
void Add(std::string_view key, std::string_view text, Json* attributes) {
  if (!text.empty()) attributes->push_back(Attribute(key, text));
}

void AddExit(const v1::ExitStatus& exit, Json* attributes) {
  if (exit.signal() != 0) attributes->push_back(Attribute("muster.exit.signal", exit.signal()));
  if (exit.signal() == 0) attributes->push_back(Attribute("muster.exit.code", exit.code()));
}

void AddFailure(const v1::Failure& failure, Json* attributes) {
  Add("muster.failure.class", contract::Name(failure.failure_class()), attributes);
  Add("muster.failure.message", failure.message(), attributes);
  Add("muster.failure.remedy", failure.remedy(), attributes);
}

// The name of a step: the state into which it leads, or what somebody asked for.
std::string NameOf(const v1::Transition& step) {
  constexpr std::string_view kPrefix = "TRANSITION_KIND_";
  if (step.kind() != v1::TRANSITION_KIND_UNSPECIFIED)
    return v1::TransitionKind_Name(step.kind()).substr(kPrefix.size());
  return std::string(step.run() == 0 ? contract::Name(step.job_state())
                                     : contract::Name(step.run_state()));
}

Json EventOf(const v1::Transition& step) {
  Json attributes = Json::array();
  Add("muster.job.state", contract::Name(step.job_state()), &attributes);
  Add("muster.evidence.source", contract::Name(step.evidence().source()), &attributes);
  Add("muster.evidence.detail", step.evidence().detail(), &attributes);
  return {{"timeUnixNano", Nanos(step.time())},
          {"name", NameOf(step)},
          {"attributes", std::move(attributes)}};
}

Json StatusOf(bool is_success, bool is_failure, const v1::Failure& failure) {
  if (is_success) return {{"code", kOk}};
  if (!is_failure) return Json::object();
  return {{"code", kError}, {"message", failure.message()}};
}

// Makes the spans of one job.
class Trace {
 public:
  Trace(std::string_view broker, const History& history)
      : job_(history.job),
        steps_(history.steps),
        id_(fmt::format("{}-{}", broker, history.job.id())) {}

  Json Spans() const {
    Json spans = Json::array({JobSpan()});
    // A job waits before its first run, and between two runs.
    Timestamp since = job_.create_time();
    for (const v1::Run& run : job_.runs()) {
      spans.push_back(Span("waiting", fmt::format("waiting-{}", run.number()), since,
                           run.assign_time(), Json::array()));
      spans.push_back(RunSpan(run));
      since = EndOf(run);
    }
    if (job_.runs().empty()) {
      spans.push_back(Span("waiting", "waiting-1", since, job_.end_time(), Json::array()));
    }
    return spans;
  }

 private:
  // A run whose end nobody knows ends with its job.
  const Timestamp& EndOf(const v1::Run& run) const {
    return run.has_end_time() ? run.end_time() : job_.end_time();
  }

  std::string SpanId(std::string_view part) const {
    return Sha256Of(fmt::format("{}-{}", id_, part)).substr(0, kSpanIdDigits);
  }

  Json Span(std::string_view name, std::string_view part, const Timestamp& start,
            const Timestamp& end, Json attributes) const {
    Json span{{"traceId", Sha256Of(id_).substr(0, kTraceIdDigits)}, {"spanId", SpanId(part)}};
    if (part != kJobPart) span["parentSpanId"] = SpanId(kJobPart);
    span["name"] = name;
    span["kind"] = kInternal;
    span["startTimeUnixNano"] = Nanos(start);
    span["endTimeUnixNano"] = Nanos(end);
    span["attributes"] = std::move(attributes);
    return span;
  }

  // The steps of a run; 0: those of the job itself.
  Json EventsOf(uint32_t run) const {
    Json events = Json::array();
    for (const v1::Transition& step : steps_) {
      if (step.run() == run) events.push_back(EventOf(step));
    }
    return events;
  }

  Json JobSpan() const {
    Json attributes = Json::array({Attribute("muster.job.id", static_cast<int64_t>(job_.id()))});
    Add("muster.job.name", job_.name(), &attributes);
    Add("muster.job.project", job_.project(), &attributes);
    Add("muster.job.user", job_.user(), &attributes);
    Add("muster.job.state", contract::Name(job_.state()), &attributes);
    Add("muster.cluster", job_.cluster(), &attributes);
    for (const auto& label : job_.labels())
      Add(fmt::format("muster.label.{}", label.first), label.second, &attributes);
    if (job_.has_exit()) AddExit(job_.exit(), &attributes);
    if (job_.has_failure()) AddFailure(job_.failure(), &attributes);
    Json span = Span("job", kJobPart, job_.create_time(), job_.end_time(), std::move(attributes));
    span["events"] = EventsOf(0);
    if (job_.job_sequence() > steps_.size())
      span["droppedEventsCount"] = job_.job_sequence() - steps_.size();
    span["status"] = StatusOf(job_.state() == v1::JOB_STATE_SUCCEEDED,
                              job_.state() == v1::JOB_STATE_FAILED, job_.failure());
    return span;
  }

  Json RunSpan(const v1::Run& run) const {
    Json attributes = Json::array({Attribute("muster.run.number", run.number())});
    Add("muster.run.key", run.run_key(), &attributes);
    Add("muster.run.state", contract::Name(run.state()), &attributes);
    Add("muster.run.external_id", run.external_id(), &attributes);
    Add("muster.cluster", run.cluster(), &attributes);
    if (run.has_exit()) AddExit(run.exit(), &attributes);
    if (run.has_failure()) AddFailure(run.failure(), &attributes);
    Json span = Span("run", fmt::format("run-{}", run.number()), run.assign_time(), EndOf(run),
                     std::move(attributes));
    span["events"] = EventsOf(run.number());
    const bool is_failure =
        run.state() == v1::RUN_STATE_FAILED || run.state() == v1::RUN_STATE_LOST;
    span["status"] = StatusOf(run.state() == v1::RUN_STATE_SUCCEEDED, is_failure, run.failure());
    return span;
  }

  static constexpr std::string_view kJobPart = "job";

  const v1::Job& job_;
  const std::vector<v1::Transition>& steps_;
  const std::string id_;
};

}  // namespace

std::string TraceOf(std::string_view broker, const History& history) {
  const Json resource{
      {"attributes",
       {Attribute("service.name", "muster"), Attribute("service.instance.id", broker)}}};
  const Json scope{{"name", "muster-broker"}, {"version", MUSTER_VERSION}};
  const Json scope_spans{{"scope", scope}, {"spans", Trace(broker, history).Spans()}};
  const Json resource_spans{{"resource", resource}, {"scopeSpans", Json::array({scope_spans})}};
  const Json body{{"resourceSpans", Json::array({resource_spans})}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace muster::notify
