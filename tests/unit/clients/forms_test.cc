// The forms of results: paths, templates, CSV, tables on a terminal, and errors as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "clients/cli/json_path.h"
#include "clients/cli/shape.h"
#include "clients/cli/table.h"
#include "contract/errors.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const Json& Example() {
  static const Json& json = *new Json(Json::parse(R"({
    "jobs": [{"id": "9", "name": "a", "state": "FAILED", "labels": {"x.y": "z"}},
             {"id": "10", "name": "b", "state": "RUNNING", "runs": [{"nodes": ["n1", "n2"]}]}],
    "count": 2})"));
  return json;
}

std::string Found(const std::string& text) {
  const auto path = JsonPath::Parse(text);
  if (!path.ok()) return std::string(path.status().message());
  std::string found;
  for (const Json* value : path->Find(Example())) found += PlainText(*value) + ";";
  return found;
}

TEST(JsonPathTest, FindsFieldsElementsAndRanges) {
  EXPECT_EQ(Found("$.count"), "2;");
  EXPECT_EQ(Found("jobs[0].id"), "9;");
  EXPECT_EQ(Found(".jobs[-1].id"), "10;");
  EXPECT_EQ(Found(".jobs[*].id"), "9;10;");
  EXPECT_EQ(Found(".jobs[0:1].id"), "9;");
  EXPECT_EQ(Found(".jobs[1:].id"), "10;");
  EXPECT_EQ(Found(".jobs[7].id"), "");
  EXPECT_EQ(Found(".jobs[-7].id"), "");
  EXPECT_EQ(Found(".jobs[0].labels['x.y']"), "z;");
  EXPECT_EQ(Found(".jobs[0].labels.x\\.y"), "z;");
  EXPECT_EQ(Found("..nodes[*]"), "n1;n2;");
  EXPECT_EQ(Found(".jobs[1].runs"), "[{\"nodes\":[\"n1\",\"n2\"]}];");
  EXPECT_EQ(Found(".nothing.at.all"), "");
}

TEST(JsonPathTest, FindsWhatFulfilsACondition) {
  EXPECT_EQ(Found(R"(.jobs[?(@.state=="FAILED")].id)"), "9;");
  EXPECT_EQ(Found(R"(.jobs[?(@.state != 'FAILED')].id)"), "10;");
  EXPECT_EQ(Found(".jobs[?(@.id > 9)].id"), "10;") << "numbers of 64 bits are texts in JSON";
  EXPECT_EQ(Found(".jobs[?(@.id <= 9)].id"), "9;");
  EXPECT_EQ(Found(".jobs[?(@.runs)].id"), "10;");
}

TEST(JsonPathTest, AProblemNamesThePlace) {
  EXPECT_THAT(Found(".jobs["),
              HasSubstr("expected a number, \"*\", a name in quotes or ?( at the end"));
  EXPECT_THAT(Found(".jobs[0"), HasSubstr("expected \"]\""));
  EXPECT_THAT(Found(".jobs..."), HasSubstr("expected"));
  EXPECT_THAT(Found(".jobs[?(@.id ~ 3)]"), HasSubstr("expected ==, !="));
}

v1::Job Failed() {
  v1::Job job;
  job.set_id(42);
  job.set_name("one, \"two\"");
  job.set_state(v1::JOB_STATE_FAILED);
  (*job.mutable_labels())["team"] = "vision";
  return job;
}

TEST(ShapeTest, WritesTextPathsAndRanges) {
  v1::ListJobsResponse list;
  *list.add_jobs() = Failed();
  list.add_jobs()->set_id(43);
  const auto text = [&list](const std::string& path) {
    const auto shape = Shape::ParseJsonPath(path);
    return shape.ok() ? shape->Apply(list) : std::string(shape.status().message());
  };
  EXPECT_EQ(text(".jobs[*].id"), "42 43\n");
  EXPECT_EQ(text(R"(ids: {.jobs[*].id}{"\n"})"), "ids: 42 43\n");
  EXPECT_EQ(text(R"({range .jobs[*]}{.id}{"\t"}{.state}{"\n"}{end})"), "42\tFAILED\n43\t\n")
      << "states are as filters take them";
  EXPECT_EQ(text("{.nothing}"), "");
  EXPECT_THAT(text("{range .jobs[*]}{.id}"), HasSubstr("has no {end}"));
  EXPECT_THAT(text("{.jobs"), HasSubstr("a { has no }"));
}

TEST(ShapeTest, ATemplateIsALine) {
  const auto shape = Shape::ParseTemplate(R"({{.id}}\t{{ .state }} {{.labels.team}})");
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->Apply(Failed()), "42\tFAILED vision\n");
  EXPECT_FALSE(Shape::ParseTemplate("{{.id}").ok());
}

TEST(LookTest, LongTextsAreCutToTheWidthOfATerminal) {
  const std::string name(60, 'x');
  Table table({{"ID", 0, true}, {"NAME"}, {"REASON"}}, Look{.width = 40});
  table.Add({{"1234567890"}, {name}, {"waits for something that takes long"}});
  const std::string out = table.Take();
  EXPECT_THAT(out, HasSubstr("1234567890  xxx"));
  EXPECT_THAT(out, HasSubstr("…"));
  for (size_t at = 0; at < out.size(); at = out.find('\n', at) + 1)
    EXPECT_LE(out.find('\n', at) - at, 40u + 2 * 2) << "each … has three bytes";
  Table whole({{"ID", 0, true}, {"NAME"}}, Look{});
  whole.Add({{"1"}, {name}});
  EXPECT_THAT(whole.Take(), HasSubstr(name)) << "not in a pipe";
}

TEST(LookTest, CsvHasAllOfATextAndQuotesWhereItMust) {
  Table table({{"ID", 4, true}, {"NAME"}, {"USER"}}, Look{.width = 10, .csv = true});
  table.Add({{"42"}, {"one, \"two\""}, {"-"}});
  table.Add({{"43"}, {std::string(30, 'x')}, {"ada"}});
  EXPECT_EQ(table.Take(),
            "ID,NAME,USER\n42,\"one, \"\"two\"\"\",\n43," + std::string(30, 'x') + ",ada\n");
}

class FormsTest : public CommandTest {
 protected:
  FormsTest() {
    broker_.list_jobs = [](const auto&) -> absl::StatusOr<v1::ListJobsResponse> {
      v1::ListJobsResponse page;
      *page.add_jobs() = Failed();
      page.add_jobs()->set_id(43);
      return page;
    };
  }
};

TEST_F(FormsTest, ListsInTheFormsOfTheUser) {
  EXPECT_EQ(Run({"list", "-o", "jsonpath=.jobs[*].id"}).out, "42 43\n");
  EXPECT_EQ(Run({"list", "-o", "template={{.id}} {{.state}}"}).out, "42 FAILED\n43 \n")
      << "a line for each job";
  EXPECT_EQ(Run({"show", "42", "43", "-o", "template={{.id}}"}).out, "42\n43\n");
  EXPECT_THAT(Run({"list", "-o", "csv"}).out, StartsWith("ID,NAME,"));
  EXPECT_THAT(Run({"list", "-o", "csv"}).out, HasSubstr("\n42,\"one, \"\"two\"\"\","));
}

TEST_F(FormsTest, AFormThatCannotBeIsRefused) {
  EXPECT_THAT(Run({"list", "-o", "jsonpath={.jobs"}).err, HasSubstr("a { has no }"));
  EXPECT_THAT(Run({"list", "-o", "xml"}).err, HasSubstr("\"xml\" is not table, wide, csv"));
  EXPECT_THAT(Run({"show", "42", "-o", "csv"}).err, HasSubstr("for verbs that print a table"));
  EXPECT_EQ(Run({"logs", "42", "-o", "csv"}).code, 2);
}

TEST_F(FormsTest, SeveralSubmittedJobsLookAsOneDoes) {
  broker_.submit_jobs = [](const auto&) -> absl::StatusOr<v1::SubmitJobsResponse> {
    v1::SubmitJobsResponse response;
    response.add_responses()->set_job_id(42);
    response.add_responses()->set_job_id(43);
    return response;
  };
  const std::string file = WriteFile("run: a\n---\nrun: b\n");
  EXPECT_EQ(Run({"submit", "-o", "jsonl", file}).out, "{\"job_id\":\"42\"}\n{\"job_id\":\"43\"}\n");
}

TEST_F(FormsTest, AnErrorIsJsonIfTheResultsAre) {
  broker_.get_job = [](const auto&) -> absl::StatusOr<v1::GetJobResponse> {
    return contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_CLUSTER", "no job is there");
  };
  const Outcome outcome = Run({"show", "42", "-o", "json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  const Json error = Json::parse(outcome.err, nullptr, false)["error"];
  EXPECT_EQ(error["code"], "NOT_FOUND");
  EXPECT_EQ(error["reason"], "NO_SUCH_CLUSTER");
  EXPECT_THAT(error["remedy"].get<std::string>(), HasSubstr("muster clusters"));
  EXPECT_THAT(Run({"show", "42"}).err, StartsWith("muster: no job"));
}

TEST_F(FormsTest, AWrongCommandLineIsJsonIfTheResultsWouldBe) {
  for (const std::vector<std::string>& form :
       {std::vector<std::string>{"-o", "json"}, {"--output=jsonl"}, {"-ojson"}}) {
    std::vector<std::string> words = form;
    words.insert(words.end(), {"list", "--stat", "x"});
    const Outcome outcome = Run(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, StartsWith("{\"error\":{\"code\":\"INVALID_ARGUMENT\""));
  }
  EXPECT_THAT(Run({"list", "--name", "json", "--stat", "x"}).err, StartsWith("muster: "));
}

}  // namespace
}  // namespace muster::cli
