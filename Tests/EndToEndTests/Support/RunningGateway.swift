import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

/// A gateway in another process that serves.
struct RunningGateway: Sendable {
    /// The process.
    let process: ChildProcess
    /// The data listener's address.
    let address: String
    /// The admin listener's address.
    let adminAddress: String
    /// The admin token.
    let adminToken: String

    /// The data listener's port.
    var port: Int { Self.port(of: self.address) }

    /// The admin listener's port.
    var adminPort: Int { Self.port(of: self.adminAddress) }

    private static func port(of address: String) -> Int {
        Int(address.split(separator: ":").last ?? "") ?? 0
    }

    /// How many requests and connections the servers refused themselves, for whatever reason.
    func rejections() async throws -> Int {
        try await self.metrics().split(separator: "\n")
            .filter { $0.hasPrefix("fcmgw_http_rejected_total{") }
            .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
            .reduce(0, +)
    }

    /// Sends a message.
    func send(
        _ body: String,
        tenant: String = "demo",
        key: String,
        headers: [String: String] = [:]
    ) async throws -> Reply {
        let own = ["Authorization": "Bearer \(key)", "Content-Type": "application/json"]
        return try await Reply.to(
            "POST",
            "\(self.address)/v1/tenants/\(tenant)/messages",
            headers: own.merging(headers) { $1 },
            body: body
        )
    }

    /// Calls the admin API, below `/admin/v1/`.
    func admin(_ method: String, _ path: String, _ body: String? = nil) async throws -> Reply {
        try await Reply.to(
            method,
            "\(self.adminAddress)/admin/v1/\(path)",
            headers: ["Authorization": "Bearer \(self.adminToken)", "Content-Type": "application/json"],
            body: body
        )
    }

    /// What Prometheus reads.
    func metrics() async throws -> String {
        try await Reply.to("GET", "\(self.adminAddress)/metrics").text
    }

    /// All audit records that match, newest first; without an action those of reading the audit are left out.
    func audit(_ query: String = "") async throws -> [JSONValue] {
        var records: [JSONValue] = []
        var cursor = ""
        while true {
            let reply = try await self.admin("GET", "audit?limit=500\(query)\(cursor)")
            guard reply.status == 200 else { throw Emulator.Refused(reply: reply.text) }
            records += reply.json["records"]?.elements ?? []
            guard let next = reply.json["next_cursor"]?.text else {
                return query.contains("action=") ? records : records.filter { $0["action"]?.text != "audit.list" }
            }
            cursor = "&cursor=\(next)"
        }
    }

    /// The audit record of a message, which may appear a moment after the answer.
    ///
    /// - Returns: `nil` when the answer is of no message.
    func auditRecord(of answer: JSONValue) async throws -> JSONValue? {
        guard let messageID = answer["id"]?.text else { return nil }
        return try await eventually { try await self.audit("&message=\(messageID)").first }
    }

    /// Makes a tenant with a credential and a key that may do everything.
    ///
    /// - Returns: the key.
    func makeTenant(_ name: String, serverKey: String, endpoint: String) async throws -> String {
        let made = try await self.admin(
            "PUT",
            "tenants/\(name)",
            #"{"display_name": "Test", "upstream": "legacy", "sender_id": "123456789012"}"#
        )
        let credential = JSONValue.object(["server_key": .string(serverKey), "endpoint": .string(endpoint)])
        let stored = try await self.admin("PUT", "tenants/\(name)/credentials/legacy", credential.compactText())
        let scopes = #"{"name": "test", "scopes": ["messages:send", "audit:read"]}"#
        let created = try await self.admin("POST", "tenants/\(name)/keys", scopes)
        guard stored.status == 200, let key = created.json["key"]?.text else {
            throw Emulator.Refused(reply: made.text + stored.text + created.text)
        }
        return key
    }

    /// Gives a tenant a service account and sets it to HTTP v1.
    func useV1(_ tenant: String, _ account: JSONValue, endpoint: String) async throws {
        let credential = JSONValue.object(["service_account": account, "endpoint": .string(endpoint)])
        let stored = try await self.admin("PUT", "tenants/\(tenant)/credentials/v1", credential.compactText())
        let set = try await self.set(tenant, upstream: "v1")
        guard stored.status == 200, set.status == 200 else { throw Emulator.Refused(reply: stored.text + set.text) }
    }

    /// Sets a tenant's protocol.
    func set(_ tenant: String, upstream: String) async throws -> Reply {
        try await self.admin("PUT", "tenants/\(tenant)", #"{"display_name": "Test", "upstream": "\#(upstream)"}"#)
    }

    /// Stops by SIGTERM and waits for the end, which must be an orderly one.
    func stopInOrder(_ sourceLocation: SourceLocation = #_sourceLocation) async throws {
        self.process.signal(SIGTERM)
        #expect(try await self.process.end() == .code(0), sourceLocation: sourceLocation)
    }

    /// Asks `/readyz` until it agrees.
    func waitUntilReady() async throws {
        try await wait { try await Reply.to("GET", "\(self.adminAddress)/readyz").status == 200 }
    }
}
