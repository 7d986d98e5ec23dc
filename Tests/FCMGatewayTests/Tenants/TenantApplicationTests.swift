import ArgumentParser
import GatewayCore
import StrictJSON
import Testing
import UnixSignals

@testable import FCMGateway
@testable import GatewayService

struct TenantApplicationTests {
    private static let now = Timestamp(microseconds: 0)

    /// A plan that creates a tenant and keys of these names.
    private static func plan(_ names: [String]) throws -> TenantPlan {
        let keys = names.map { "{name: \($0), scopes: [audit:read]}" }.joined(separator: ", ")
        let file = try TenantsFile(name: "t.yaml", text: "tenants:\n  - {tenant: shop, keys: [\(keys)]}\n")
        return TenantPlan(file.tenants, present: [], isPruning: false, now: self.now)
    }

    /// The result of applying a plan.
    private struct Outcome {
        var printed: [CommandOutput] = []
        var calls = 0
        var error: (any Error)?

        var object: JSONValue? {
            self.printed.last { !$0.answer.isEmpty }.flatMap { try? JSONValue(parsing: $0.answer) }
        }
        var remarks: String { self.printed.map(\.remark).joined(separator: "\n") }
    }

    /// Applies a plan to a gateway whose new keys have the number of the call.
    private static func apply(
        _ plan: TenantPlan,
        isJSON: Bool,
        stopBefore stop: Int? = nil,
        print refuse: (CommandOutput) -> CommandFailure? = { _ in nil },
        answer: (Int) throws -> JSONValue = { try JSONValue(parsing: #"{"id":"k\#($0)","key":"secret-\#($0)"}"#) }
    ) async -> Outcome {
        var outcome = Outcome()
        do {
            try await TenantApplication(plan: plan, isJSON: isJSON)
                .run(
                    reporter: ProgressReporter(ProgressReporter.Pace("changes made", style: .silent)) { _ in },
                    stop: { outcome.calls == stop ? .sigterm : nil },
                    print: { output in
                        if let failure = refuse(output) { throw failure }
                        outcome.printed.append(output)
                    },
                    call: { change in
                        outcome.calls += 1
                        return change.method == .post ? try answer(outcome.calls) : nil
                    }
                )
        } catch {
            outcome.error = error
        }
        return outcome
    }

    @Test("After a signal between two changes the JSON has the made keys and the changes not made")
    func interrupted() async throws {
        let outcome = await Self.apply(try Self.plan(["a", "b", "c"]), isJSON: true, stopBefore: 3)
        #expect(outcome.calls == 3)
        let object = try #require(outcome.object)
        #expect(object.list("keys").map { $0.text("key") } == ["secret-2", "secret-3"])
        #expect(object.list("changes").count == 3)
        #expect(object.list("not_made").map { $0.text("name") } == ["c"])
        #expect(object.text("interrupted_by") == "SIGTERM")
        let interruption = try #require(outcome.error as? Interruption)
        #expect(interruption.exitCode.rawValue == 143)
        #expect(interruption.message.contains("3 changes made; SIGTERM stopped the work"))
        #expect(interruption.message.contains("key c"))
        let report = try #require(FailureReport(interruption)?.problem)
        #expect(try JSONDocument(parsing: report).root.text("code") == "interrupted")
    }

    @Test("A signal during the last change has no effect")
    func interruptedAtTheEnd() async throws {
        let outcome = await Self.apply(try Self.plan(["a"]), isJSON: true, stopBefore: 2)
        #expect(outcome.error == nil)
        #expect(outcome.object?["interrupted_by"] == nil)
        #expect(outcome.object?.list("not_made").isEmpty == true)
    }

    @Test("The text output has each made change, and after a signal the failure lists the rest")
    func interruptedForPeople() async throws {
        let outcome = await Self.apply(try Self.plan(["a", "b"]), isJSON: false, stopBefore: 2)
        #expect(outcome.printed.map(\.answer).joined().contains("key: secret-2"))
        #expect((outcome.error as? Interruption)?.message.contains("  + key b of tenant shop") == true)
    }

    @Test("A failed call keeps earlier keys, and reports a key that may have been made", arguments: [true, false])
    func failed(isJSON: Bool) async throws {
        let outcome = await Self.apply(
            try Self.plan(["a", "b"]),
            isJSON: isJSON,
            answer: { number in
                if number == 3 { throw CommandFailure("no answer") }
                return try JSONValue(parsing: #"{"id":"k","key":"secret"}"#)
            }
        )
        #expect(outcome.printed.map(\.answer).joined().contains("secret"))
        let message = "\(try #require(outcome.error))"
        #expect(message.contains("no answer") && message.contains("key list shop shows it, revoke it"), "\(message)")
        if isJSON {
            #expect(outcome.object?.list("not_made").count == 1)
        } else {
            #expect(outcome.remarks.contains("2 changes made; the first of these failed"))
        }
        // A refusal by the gateway proves that no key was made; an overload or a proxy's answer doesn't.
        for (status, code, isDoubtful) in [
            (409, "conflict", false), (503, "audit_unavailable", false), (503, "overloaded", true), (502, nil, true),
            (404, nil, true),
        ] as [(Int, String?, Bool)] {
            let problem = try code.map { try JSONValue(parsing: #"{"code":"\#($0)"}"#) }
            let refused = await Self.apply(
                try Self.plan(["a"]),
                isJSON: isJSON,
                answer: { _ in throw APIError(status: status, requestID: nil, problem: problem, hint: nil) }
            )
            let message = "\(try #require(refused.error))"
            #expect(message.contains("key list shop shows it, revoke it") == isDoubtful, "\(message)")
        }
    }

    @Test("A key that can't be printed stops the work, and the error says how to revoke it", arguments: [true, false])
    func unprintable(isJSON: Bool) async throws {
        let full = CommandFailure("full")
        let outcome = await Self.apply(
            try Self.plan(["a", "b"]),
            isJSON: isJSON,
            print: { output in
                guard let advice = output.adviceIfLost else { return nil }
                return CommandFailure("full. \(advice)")
            }
        )
        let message = "\(try #require(outcome.error))"
        #expect(message.hasPrefix(full.message) && message.contains("fcm-gateway key revoke shop k2"), "\(message)")
        #expect(outcome.calls == (isJSON ? 3 : 2))
        if !isJSON { #expect(outcome.remarks.contains("  + key b of tenant shop")) }
    }
}
