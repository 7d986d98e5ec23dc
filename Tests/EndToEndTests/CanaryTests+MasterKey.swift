import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

extension EndToEnd.CanaryTests {
    /// Changes a stopped gateway's master key, with wrong keys first, then serves with the new key until a crash.
    func changeMasterKey(_ trial: inout Trial, _ directory: PrivateDirectory) async throws {
        let keys = [Self.masterKey, Self.newMasterKey, Self.wrongMasterKey]
            .map { Data($0).base64EncodedString() }
        var environment = trial.environment
        for (name, key, previous, code) in [
            ("a wrong key before it", keys[1], keys[2], Int32(1)), ("no key before it", keys[1], nil, 1),
            ("the same key", keys[1], keys[1], 1), ("a key that is none", Self.serverKey, keys[0], 1),
            ("the right keys", keys[1], keys[0], 0), ("the right keys again", keys[1], keys[0], 0),
        ] {
            environment["GATEWAY_MASTER_KEY"] = key
            environment["GATEWAY_PREVIOUS_MASTER_KEY"] = previous
            let outcome = try await Program.gateway(["credential", "rewrap"], environment: environment)
            #expect(outcome.end == .code(code), "\(name): \(outcome.errors)")
            trial.keep(outcome, "credential rewrap with \(name)")
        }
        for verb in ["show", "check"] {
            let outcome = try await Program.gateway(["config", verb], environment: environment)
            trial.keep(outcome, "config \(verb) with two keys")
        }
        // The file may hold no secrets; the refusal names the setting but not its value.
        let file = try directory.write(
            "masterKey: \(keys[2])\nadmin:\n  token: '\(Self.wrongAdminToken)'\n",
            to: "secrets.yaml"
        )
        for verb in [["config", "show"], ["config", "check"], ["serve"]] {
            let outcome = try await Program.gateway(verb + ["--config", file], environment: environment).expect(1)
            #expect(outcome.errors.contains("masterKey"))
            trial.keep(outcome, "\(verb.joined(separator: " ")) with secrets in the file")
        }
        environment["GATEWAY_MASTER_KEY"] = keys[2]
        environment["GATEWAY_PREVIOUS_MASTER_KEY"] = nil
        for verb in [["serve"], ["audit", "verify"]] {
            let outcome = try await Program.gateway(verb, environment: environment)
            trial.keep(outcome, "\(verb.joined(separator: " ")) with a wrong master key")
        }
        environment["GATEWAY_MASTER_KEY"] = keys[1]
        let key = trial.keys.first ?? ""
        let crashed = try await RunningGateway.serving(environment) { gateway in
            let reply = try await gateway.send(#"{"token": "\#(Self.serverKey.count)"}"#, key: key)
            #expect(reply.status != 401)
            gateway.process.signal(SIGABRT)
            _ = try? await gateway.process.errors.first { $0.contains("Backtrace took") ? true : nil }
            return gateway.process.errors.bytes + gateway.process.output.bytes
        }
        trial.found["a crash"] = crashed
    }
}
