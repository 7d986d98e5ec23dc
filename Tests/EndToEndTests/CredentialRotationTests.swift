import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Credential rotation under load")
    struct CredentialRotationTests {
        private static let senders = 6

        /// Sends from several callers while a body runs, and returns the number of sends; every send must succeed.
        private func load(_ site: Site, during body: () async throws -> Void) async throws -> Int {
            let busy = Observed(Set<Int>())
            return try await withThrowingTaskGroup(of: Int.self) { group in
                for sender in 0..<Self.senders {
                    group.addTask {
                        defer { busy.change { _ = $0.insert(sender) } }
                        var count = 0
                        while !Task.isCancelled {
                            let body = #"{"token": "device-\#(sender)-\#(count)"}"#
                            do {
                                let reply = try await site.send(body)
                                #expect(reply.status == 200, "\(reply.text)")
                                count += 1
                                if count == 10 { busy.change { _ = $0.insert(sender) } }
                            } catch {
                                if !Task.isCancelled { Issue.record(error) }
                                break
                            }
                        }
                        return count
                    }
                }
                try await body()
                // On a busy machine some senders may not have run yet.
                try await wait { busy.current.count == Self.senders }
                group.cancelAll()
                return try await group.reduce(0, +)
            }
        }

        /// Finds the call for a device in FCM's journal, among the newest calls first.
        private static func call(to device: String, _ emulator: Emulator) async throws -> JSON? {
            for limit in [50, 10_000] {
                let call = try await emulator.journal(limit: limit)
                    .first { $0["body"]?.text?.contains("\"\(device)\"") == true }
                if let call { return call }
            }
            return nil
        }

        @Test("No send fails while the server key is replaced 20 times, and each new key is used at once")
        func serverKeys() async throws {
            try await Site.with(serverKey: "key-0") { site in
                let (gateway, emulator, key) = (site.gateway, site.emulator, site.key)
                let sent = try await self.load(site) {
                    for number in 1...20 {
                        let body = #"{"server_key": "key-\#(number)", "endpoint": "\#(emulator.address)"}"#
                        #expect(try await gateway.admin("PUT", "tenants/demo/credentials/legacy", body).status == 200)
                        // The new key is in use once the change is answered.
                        _ = try await gateway.send(#"{"token": "marker-\#(number)"}"#, key: key)
                        let call = try #require(await Self.call(to: "marker-\(number)", emulator))
                        #expect(call.headers("authorization") == ["key=key-\(number)"])
                    }
                }
                #expect(sent > 20)
                try await gateway.stopInOrder()
            }
        }
    }
}
