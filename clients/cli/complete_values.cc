// The values that only the broker or the user's files have.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "clients/cli/completion.h"
#include "clients/cli/contexts.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/text.h"
#include "clients/cpp/client.h"
#include "clients/cpp/login/kept_login.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

using Source = Completion::Source;

// Nobody waits longer for a shell that completes a word.
constexpr absl::Duration kShellPatience = absl::Seconds(1);
// More jobs are no list to choose from.
constexpr int kMaxOffered = 200;
// A description is beside the value in one line.
constexpr size_t kMaxDescription = 60;

void OfferValue(const std::string& value, const std::string& description, Completion* completion) {
  if (value.starts_with(completion->begun)) completion->candidates.push_back({value, description});
}

void OfferContexts(const Environment& environment, Completion* completion) {
  const std::string path = ContextsPath(environment);
  if (path.empty()) return;
  const auto contexts = ReadContexts(path);
  if (!contexts.ok()) return;
  for (const auto& [name, context] : contexts->by_name)
    OfferValue(name, context.broker, completion);
}

void OfferJobs(client::Client& client, Completion* completion) {
  v1::ListJobsRequest request;
  request.set_filter(completion->filter);
  request.set_page_size(kMaxOffered);
  const auto response = client.ListJobs(request);
  if (!response.ok()) return;
  for (const v1::Job& job : response->jobs()) {
    std::string name = OneLine(job.name());
    if (!name.empty()) name += ", ";
    OfferValue(fmt::format("{}{}", job.id(), completion->after),
               name + std::string(contract::Name(job.state())), completion);
  }
}

void OfferClusters(client::Client& client, Completion* completion) {
  const auto response = client.ListClusters({});
  if (!response.ok()) return;
  for (const v1::Cluster& cluster : response->clusters())
    OfferValue(cluster.name(), std::string(contract::Name(cluster.kind())), completion);
}

void OfferProjects(client::Client& client, Completion* completion) {
  const auto response = client.ListProjects({});
  if (!response.ok()) return;
  for (const v1::Project& project : response->projects())
    OfferValue(project.name(), OneLine(project.description()), completion);
}

void OfferFromBroker(const Invocation& call, const Environment& environment,
                     Completion* completion) {
  const auto config = LoadConfig(call, environment);
  if (!config.ok() || config->broker.empty()) return;
  client::ClientOptions options;
  options.address = config->broker;
  options.token = config->token;
  options.ca = config->ca;
  options.call_timeout = kShellPatience;
  options.absent_patience = absl::ZeroDuration();
  if (config->token.empty() && !config->login_file.empty()) {
    if (auto login = client::KeptLogin::Open(config->login_file, config->broker); login.ok())
      options.credential = *std::move(login);
  }
  auto client = client::Client::Create(options);
  if (!client.ok()) return;
  // The process ends without it.
  client::Client& connected = *client->release();
  switch (completion->source) {
    case Source::kJobs:
      return OfferJobs(connected, completion);
    case Source::kClusters:
      return OfferClusters(connected, completion);
    case Source::kProjects:
      return OfferProjects(connected, completion);
    default:
      return;
  }
}

std::string_view RestOf(Source source) {
  if (source == Source::kFiles) return ":files";
  return source == Source::kDirectories ? ":directories" : ":none";
}

}  // namespace

int PrintCompletion(const Invocation& call, Terminal& terminal, const Environment& environment) {
  Completion completion = call.completion;
  const Source source = completion.source;
  if (source == Source::kContexts) OfferContexts(environment, &completion);
  if (source == Source::kJobs || source == Source::kClusters || source == Source::kProjects)
    OfferFromBroker(call, environment, &completion);
  std::string out;
  for (const Candidate& candidate : completion.candidates) {
    out += completion.before + Harmless(candidate.value);
    const std::string description = CutToWords(OneLine(candidate.description), kMaxDescription);
    if (!description.empty()) out += "\t" + description;
    out += '\n';
  }
  terminal.Out(fmt::format("{}{}\n", out, RestOf(source)));
  return kOk;
}

}  // namespace muster::cli
