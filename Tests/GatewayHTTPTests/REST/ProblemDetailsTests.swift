import Foundation
import GatewayTestKit
import HTTPTypes
import InMemoryLogging
import Testing

@testable import GatewayHTTP

/// Problems and log lines never quote the content of a request.
struct ProblemDetailsTests {
    /// Contains characters that JSON, percent-encoding and base64 each encode differently.
    private static let canary = #"c4nary/"\ü+<%7e>=\u0001"#.replacing(#"\u0001"#, with: "\u{1}")

    /// Every form of the canary that an answer or a log line could contain.
    private static let forms: [String] = {
        let bytes = Array(Self.canary.utf8)
        var forms = ["c4nary", Self.canary]
        forms.append(Self.canary.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
        // Within a longer text, base64 has one of three forms; the first and last digits depend on the neighbours.
        for shift in 0..<3 {
            let text = Data(Array(repeating: 0, count: shift) + bytes).base64EncodedString()
            forms.append(String(text.dropFirst(shift == 0 ? 0 : 4).prefix(bytes.count / 3 * 4 - 8)))
        }
        forms += forms.map { $0.replacing("+", with: "-").replacing("/", with: "_") }
        forms.append("c4nary".utf8.map { String($0, radix: 16) }.joined())
        forms.append("c4nary".utf8.map { #"\u00"# + String($0, radix: 16) }.joined())
        return forms
    }()

    @Test("Random JSON never fails the gateway and is never echoed by a problem or a log line", arguments: 1...8)
    func randomJSON(seed: UInt64) async throws {
        try await TestGateway.run { gateway, key in
            var generator = SeededGenerator(seed: seed)
            var statuses: [Int: Int] = [:]
            for _ in 0..<400 {
                var writer = RandomJSON(canary: Self.canary, generator: generator)
                let body = writer.message()
                generator = writer.generator
                let answer = await gateway.send(body, key: key)
                statuses[answer.status, default: 0] += 1
                try Self.check(answer, body)
            }
            #expect(Set(statuses.keys).isSubset(of: [200, 400, 404, 422, 429]))
            #expect((statuses[200] ?? 0) > 0)
            #expect((statuses[422] ?? 0) > 0)
            Self.checkLogs(gateway)
        }
    }

    @Test("Secrets in headers and paths are not echoed either")
    func headersAndPaths() async throws {
        try await TestGateway.run { gateway, key in
            let escaped = "c4nary%2F%22"
            let answers = [
                await gateway.send("{}", key: "c4nary"),
                await gateway.send("{}", key: key, headers: ["Content-Type": "c4nary/json"]),
                await gateway.send("{}", key: key, headers: ["Idempotency-Key": "c4nary"]),
                await gateway.send("{}", key: key, headers: ["X-Request-Timeout-Ms": "c4nary"]),
                await gateway.data(.get, "/v1/tenants/\(escaped)/audit", key: key),
                await gateway.data(.get, "/\(escaped)", key: key),
                await gateway.data(.get, "/v1/tenants/demo/audit?\(escaped)=1", key: key),
                await gateway.data(.get, "/v1/tenants/demo/audit?from=\(escaped)", key: key),
                await gateway.data(.get, "/v1/tenants/demo/audit?cursor=\(escaped)", key: key),
                await gateway.data(.get, "/v1/tenants/demo/audit?outcome=\(escaped)", key: key),
                await gateway.data(.get, "/v1/tenants/demo/audit?limit=\(escaped)", key: key),
                await gateway.admin(.get, "/admin/v1/tenants", token: "c4nary"),
                await gateway.admin(.put, "/admin/v1/tenants/demo", body: #"{"display_name":5,"upstream":"c4nary"}"#),
                await gateway.admin(
                    .put,
                    "/admin/v1/tenants/demo/credentials/legacy",
                    body: #"{"server_key":"c4nary \u0000","endpoint":"c4nary"}"#
                ),
                await gateway.admin(.post, "/admin/v1/tenants/demo/keys", body: #"{"scopes":["c4nary"]}"#),
                await gateway.admin(.put, "/admin/v1/tenants/demo/limits", body: #"{"tenant":"c4nary"}"#),
            ]
            for (index, answer) in answers.enumerated() {
                #expect((400..<500).contains(answer.status), "\(index)")
                try Self.check(answer, String(index))
            }
            Self.checkLogs(gateway)
        }
    }

    private static func check(
        _ answer: Answer,
        _ body: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #expect(answer.status < 500, "\(body)", sourceLocation: sourceLocation)
        guard answer.status >= 400 else { return }
        _ = try answer.problem(sourceLocation: sourceLocation)
        let text = answer.body + answer.headers.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
        for form in Self.forms {
            #expect(!text.contains(form), "\(body)", sourceLocation: sourceLocation)
        }
    }

    private static func checkLogs(_ gateway: TestGateway, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(!gateway.logs.entries.isEmpty, sourceLocation: sourceLocation)
        for entry in gateway.logs.entries {
            let text = "\(entry.message) \(entry.metadata)"
            #expect(!Self.forms.contains { text.contains($0) }, "\(text)", sourceLocation: sourceLocation)
        }
    }
}
