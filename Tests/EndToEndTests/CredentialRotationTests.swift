import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Replacing keys and credentials under load")
    struct CredentialRotationTests {
        private static let senders = 6

        /// Sends from several callers until a body has done its work; every send must succeed. Returns how many did.
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
                // The machine may have had other things to do than to let them send meanwhile.
                try await wait { busy.current.count == Self.senders }
                group.cancelAll()
                return try await group.reduce(0, +)
            }
        }

        /// The call that sent to a device, which others may have followed.
        private static func call(to device: String, _ emulator: Emulator) async throws -> JSON? {
            for limit in [50, 10_000] {
                let call = try await emulator.journal(limit: limit)
                    .first { $0["body"]?.text?.contains("\"\(device)\"") == true }
                if let call { return call }
            }
            return nil
        }

        @Test("A server key is replaced, again and again, and no send fails")
        func serverKeys() async throws {
            try await Site.with(serverKey: "key-0") { site in
                let (gateway, emulator, key) = (site.gateway, site.emulator, site.key)
                let sent = try await self.load(site) {
                    for number in 1...20 {
                        let body = #"{"server_key": "key-\#(number)", "endpoint": "\#(emulator.address)"}"#
                        #expect(try await gateway.admin("PUT", "tenants/demo/credentials/legacy", body).status == 200)
                        // From the answer on, the new one is used.
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
