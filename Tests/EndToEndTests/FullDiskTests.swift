import GatewayTestKit
import ProcessTestKit
import Testing

extension EndToEnd {
    @Suite("Full disk", .enabled(if: SmallDisk.isAvailable, "mounting needs privileges"))
    struct FullDiskTests {
        @Test("On a full disk sends and changes are refused, and the gateway recovers once space is free")
        func fullDisk() async throws {
            try await SmallDisk.with { disk in
                let data = "\(disk.path)/data"
                try await DevGateway.with(data) { dev in
                    #expect(try await dev.send(#"{"token": "before"}"#).status == 200)
                    try disk.fill()
                    let refused = try await self.firstReply(dev, status: 503)
                    #expect(refused.code == "audit_unavailable")
                    #expect(refused.headers["retry-after"] == "5")

                    let callsBefore = try await dev.emulator.journal().count
                    for _ in 1...50 {
                        let reply = try await dev.send(#"{"token": "meanwhile"}"#)
                        #expect(reply.status == 503)
                        #expect(reply.code == "audit_unavailable")
                    }
                    #expect(try await dev.emulator.journal().count == callsBefore)
                    let change = try await dev.gateway.admin("PUT", "tenants/late", #"{"display_name": "L"}"#)
                    #expect(change.status == 503)
                    #expect(change.code == "audit_unavailable")
                    #expect(try await dev.gateway.admin("GET", "tenants/late").status == 404)
                    let unready = try await self.readiness(dev, status: 503)
                    #expect(unready.text.contains("The audit log can't be written"))
                    #expect(try await Reply.to("GET", "\(dev.gateway.adminAddress)/livez").status == 200)
                    #expect(try await dev.gateway.metrics().contains("fcmgw_store_up{store=\"sqlite\"} 0\n"))

                    try disk.free()
                    // Writing the pending record is the probe: recovery needs no new send.
                    _ = try await self.readiness(dev, status: 200)
                    _ = try await self.firstReply(dev, status: 200)
                    #expect(try await dev.gateway.admin("PUT", "tenants/late", #"{"display_name": "L"}"#).status < 300)
                    #expect(try await dev.gateway.metrics().contains("fcmgw_store_up{store=\"sqlite\"} 1\n"))
                    #expect(try await Program.auditVerify(data).end == .code(0))

                    // Every call that reached FCM is recorded, including those made while the disk filled up.
                    let calls = try await dev.emulator.journal().count
                    try await dev.gateway.stopInOrder()
                    try await Program.auditVerify(data).expect(0)
                    try await DevGateway.with(data) { again in
                        let sends = try await again.gateway.audit("&action=message.send&outcome=accepted")
                        #expect(sends.count == calls)
                    }
                }
            }
        }

        /// Polls `/readyz` until the answer has a status.
        private func readiness(_ dev: DevGateway, status: Int) async throws -> Reply {
            try await eventually {
                let reply = try await Reply.to("GET", "\(dev.gateway.adminAddress)/readyz")
                return reply.status == status ? reply : nil
            }
        }

        /// Sends until an answer has a status.
        private func firstReply(_ dev: DevGateway, status: Int) async throws -> Reply {
            var number = 0
            return try await eventually {
                number += 1
                let reply = try await dev.send(#"{"token": "device-\#(number)"}"#)
                return reply.status == status ? reply : nil
            }
        }
    }
}
