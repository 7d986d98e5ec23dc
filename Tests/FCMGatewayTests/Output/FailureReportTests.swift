import ArgumentParser
import GatewayCore
import StrictJSON
import Testing

@testable import FCMGateway
@testable import GatewayService

struct FailureReportTests {
    private static func problem(_ error: any Error) throws -> JSONValue? {
        try FailureReport(error).map { try JSONDocument(parsing: $0.problem).root }
    }

    @Test(
        "--output json selects JSON only before the -- that ends options",
        arguments: [
            ("tenant list --output json", true), ("tenant list --output=json", true), ("tenant --output table", false),
            ("send demo -- --output json", false), ("tenant list --output", false), ("json --output", false),
        ]
    )
    func asked(line: String, isJSON: Bool) {
        #expect(OutputFormat.isJSON(askedBy: line.split(separator: " ").map(String.init)) == isJSON)
    }

    @Test("The gateway's problem is passed on with the answer's status, its request id and a hint")
    func refusal() throws {
        let problem = try JSONValue(
            parsing: #"{"code":"unauthenticated","detail":"no","retryable":false,"status":1,"request_id":"r0"}"#
        )
        let refusal = APIError(status: 401, requestID: "r1", problem: problem, hint: "set it")
        let expected =
            #"{"code":"unauthenticated","detail":"no","hint":"set it","request_id":"r1","retryable":false,"status":401}"#
        #expect(try Self.problem(refusal)?.canonicalText == expected)
        let stranger = APIError(status: 502, requestID: nil, problem: try JSONValue(parsing: "[]"))
        let other = try Self.problem(stranger)
        #expect(other?.text("code") == "unexpected_answer")
        #expect(other?.integer("status") == 502)
    }

    @Test("Every failure has a code; exit codes and help requests have no report")
    func codes() throws {
        let located = ConfigurationProblem(.file("g.yaml", line: 3), key: "http.port", message: "is odd")
        let cases: [(any Error, String)] = [
            (CommandFailure("x"), "command_failed"), (GatewayError(.conflict, "x"), "conflict"),
            (ConfigurationProblems([located]), "invalid_configuration"), (ValidationError("x"), "usage"),
            (CancellationError(), "failed"),
        ]
        for (error, code) in cases {
            let problem = try #require(try Self.problem(error))
            #expect(problem.text("code") == code)
            #expect(problem.text("detail")?.isEmpty == false)
        }
        let errors = try Self.problem(ConfigurationProblems([located]))?.list("errors").map(\.canonicalText)
        #expect(errors == [#"{"detail":"is odd","file":"g.yaml","key":"http.port","line":3}"#])
        #expect(FailureReport(ExitCode(2))?.text == nil)
        #expect(FailureReport(CleanExit.helpRequest())?.text == nil)
    }
}
