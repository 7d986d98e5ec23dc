import ArgumentParser
import Foundation
import GatewayCore
import Testing

@testable import FCMGateway
@testable import GatewayService

struct FailureReportTests {
    @Test(
        "JSON is asked for by the option, in front of anything that ends options",
        arguments: [
            ("tenant list --output json", true), ("tenant list --output=json", true), ("tenant --output table", false),
            ("send demo -- --output json", false), ("tenant list --output", false), ("json --output", false),
        ]
    )
    func asked(line: String, isJSON: Bool) {
        #expect(OutputFormat.isJSON(askedBy: line.split(separator: " ").map(String.init)) == isJSON)
    }

    @Test("The gateway's problem is passed on as it is, with its request's id and a hint")
    func refusal() throws {
        let problem = try JSONValue(parsing: Data(#"{"code":"unauthenticated","detail":"no","retryable":false}"#.utf8))
        let refusal = APIError(status: 401, requestID: "r1", problem: problem, hint: "set it")
        let expected: JSONValue = .object([
            "code": "unauthenticated", "detail": "no", "retryable": .bool(false), "status": .integer(401),
            "request_id": "r1", "hint": "set it",
        ])
        #expect(FailureReport(refusal)?.problem == expected)
        let other = FailureReport(APIError(status: 502, requestID: nil, problem: .array([])))
        #expect(other?.problem["code"]?.text == "unexpected_answer")
        #expect(other?.problem["status"] == .integer(502))
    }

    @Test("Every failure has a code; what was said already, and help, are none")
    func codes() throws {
        let located = ConfigurationProblem(place: .file("g.yaml", line: 3), key: "http.port", message: "is odd")
        let cases: [(any Error, String)] = [
            (CommandFailure("x"), "command_failed"), (GatewayError(.conflict, "x"), "conflict"),
            (ConfigurationProblems([located]), "invalid_configuration"), (ValidationError("x"), "usage"),
            (CancellationError(), "failed"),
        ]
        for (error, code) in cases {
            let report = try #require(FailureReport(error))
            #expect(report.problem["code"]?.text == code)
            #expect(report.problem["detail"]?.text?.isEmpty == false)
        }
        let errors = FailureReport(ConfigurationProblems([located]))?.problem["errors"]?.elements
        let expected: JSONValue = .object([
            "file": "g.yaml", "line": .integer(3), "key": "http.port", "detail": "is odd",
        ])
        #expect(errors == [expected])
        #expect(FailureReport(ExitCode(2))?.text == nil)
        #expect(FailureReport(CleanExit.helpRequest())?.text == nil)
    }
}
