import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

/// A gateway under test, and everything that it put out.
struct Trial {
    let gateway: RunningGateway
    let emulator: Emulator
    /// The variables that the gateway was started with.
    let environment: [String: String]
    /// The keys that were made, the demo tenant's first.
    var keys: [String] = []
    /// The secrets of HTTP v1, which the fake FCM makes.
    var v1Secrets: [(name: String, text: String)] = []
    /// The output, by place.
    var found: [String: Data] = [:]
    /// The data that reached the fake FCM.
    var sentToFCM = Data()

    mutating func send(_ body: JSON, headers: [String: String] = [:], expecting status: Int?) async throws {
        try await self.send(text: body.encoded, headers: headers, expecting: status)
    }

    mutating func send(text: String, headers: [String: String] = [:], expecting status: Int?) async throws {
        let key = self.keys.first ?? ""
        let reply = try await self.gateway.send(text, key: key, headers: headers)
        if let status { #expect(reply.status == status, "\(text): \(reply.text)") }
        self.keep(reply, "a send")
    }

    /// Keeps an answer without the tokens in its results, which the caller sent.
    mutating func keep(_ reply: Reply, _ place: String) {
        var body = reply.body
        if reply.status == 200, case .object(let members) = reply.json {
            let own = members.filter { $0.key != "replacement_token" }.mapValues(Self.anonymous)
            body = Data(JSON.object(own).encoded.utf8)
        }
        let headers = reply.headers.map { "\($0.key): \($0.value)\r\n" }.sorted().joined()
        self.found["\(place) (\(self.found.count)): \(reply.status)"] = Data(headers.utf8) + body
    }

    mutating func keep(_ outcome: Program.Outcome, _ place: String) {
        self.found[place] = Data((outcome.output + outcome.errors).utf8)
    }

    /// Keeps the metrics, the audit as operators and tenants see it, and the journal of the fake FCM.
    mutating func collectAudit(token: String) async throws {
        self.keep(try await Reply.to("GET", "\(self.gateway.adminAddress)/metrics"), "metrics")
        let records = try await self.gateway.audit()
        #expect(records.count > 40)
        self.found["audit"] = Data(JSON.array(records).encoded.utf8)
        let target = token.addingPercentEncoding(withAllowedCharacters: .unreserved) ?? ""
        let path = "/v1/tenants/demo/audit?target=\(target)"
        let reply = try await self.gateway.ask("GET", path, key: self.keys.first ?? "")
        #expect((reply.json["records"]?.elements.count ?? 0) > 3, "\(reply.text)")
        self.keep(reply, "the tenant's audit")
        for entry in try await self.emulator.journal() {
            self.sentToFCM += Data((entry.headers("authorization").joined() + (entry["body"]?.text ?? "")).utf8)
        }
    }

    /// Keeps the content of all files in a folder.
    mutating func collect(filesIn path: String, _ when: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        #expect(names.contains("gateway.sqlite"))
        for name in names {
            self.found["\(name) \(when)"] = FileManager.default.contents(atPath: "\(path)/\(name)")
        }
    }

    private static func anonymous(_ value: JSON) -> JSON {
        guard case .array(let elements) = value else { return value }
        return .array(elements.map { $0.without("token", "replacement_token") })
    }
}
