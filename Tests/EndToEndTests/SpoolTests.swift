import Foundation
import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("The audit's spool", .enabled(if: StoreHold.isAvailable, "python3 is needed"))
    struct SpoolTests {
        private static let count = 120

        /// Sends messages from several callers and returns their ids; every send must succeed.
        private func send(_ count: Int, _ dev: DevGateway, _ name: String) async throws -> Set<String> {
            try await withThrowingTaskGroup(of: [String].self) { group in
                for sender in 0..<4 {
                    group.addTask {
                        var ids: [String] = []
                        for number in stride(from: sender, to: count, by: 4) {
                            let reply = try await dev.send(#"{"token": "\#(name)-\#(number)"}"#)
                            #expect(reply.status == 200, "\(reply.text)")
                            if let id = reply.json["id"]?.text { ids.append(id) }
                        }
                        return ids
                    }
                }
                return try await group.reduce(into: []) { $0.formUnion($1) }
            }
        }

        /// Polls a metric until its value meets a condition.
        private func wait(_ dev: DevGateway, _ metric: String, until isMet: (Int) -> Bool) async throws {
            _ = try await eventually {
                let value = try await self.metric(dev, metric)
                return isMet(value) ? value : nil
            }
        }

        private func metric(_ dev: DevGateway, _ name: String) async throws -> Int {
            try await dev.gateway.metric(name).flatMap { Int($0) } ?? 0
        }

        private static let spooledRecords = #"fcmgw_audit_records_total{result="spooled"}"#
        private static let spoolBytes = "fcmgw_audit_spool_bytes"

        /// Sends to a locked store until all records are in the spool, and returns the messages' ids.
        private func fillSpool(_ dev: DevGateway) async throws -> Set<String> {
            let ids = try await self.send(Self.count, dev, "spooled")
            try await self.wait(dev, Self.spooledRecords) { $0 >= Self.count }
            return ids
        }

        /// Kills a gateway whose records are all in the spool, and returns the messages' ids.
        private func killedWithASpool(_ data: String) async throws -> Set<String> {
            try await DevGateway.with(data) { dev in
                try await StoreHold.on(data) {
                    let ids = try await self.fillSpool(dev)
                    try await dev.gateway.kill()
                    return ids
                }
            }
        }

        /// Restarts and checks that each message has one record and that the audit verifies.
        private func check(_ data: String, _ ids: Set<String>, actions: [String: Int] = [:]) async throws {
            try await DevGateway.with(data) { dev in
                try await Program.auditVerify(data).expect(0)
                let records = try await dev.gateway.audit("&action=message.send")
                let kept = records.compactMap { $0["message"]?.text }
                #expect(kept.count == Set(kept).count, "\(kept.count - Set(kept).count) are there twice")
                #expect(ids.subtracting(kept).isEmpty, "\(ids.subtracting(kept).count) of \(ids.count) are lost")
                #expect(Set(kept).subtracting(ids).isEmpty)
                for (action, count) in actions {
                    #expect(try await dev.gateway.audit("&action=\(action)").count == count, "\(action)")
                }
                try await dev.gateway.stopInOrder()
            }
            try await Program.auditVerify(data).expect(0)
            #expect(try Data(contentsOf: URL(filePath: "\(data)/audit.spool")).isEmpty)
        }

        @Test("While the store is locked sends succeed and changes are refused; every record is stored later")
        func locked() async throws {
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                let ids = try await DevGateway.with(data) { dev in
                    var ids = try await self.send(8, dev, "before")
                    ids.formUnion(
                        try await StoreHold.on(data) {
                            let ids = try await self.send(Self.count, dev, "meanwhile")
                            let change = try await dev.gateway.admin("PUT", "tenants/late", #"{"display_name": "L"}"#)
                            #expect(change.status == 503)
                            #expect(change.code == "audit_unavailable")
                            try await self.wait(dev, Self.spooledRecords) { $0 >= Self.count }
                            #expect(try await self.metric(dev, Self.spoolBytes) > 0)
                            #expect(try await Program.auditVerify(data).end == .code(0))
                            return ids
                        }
                    )
                    try await self.wait(dev, Self.spoolBytes) { $0 == 0 }
                    ids.formUnion(try await self.send(8, dev, "after"))
                    #expect(try await dev.gateway.admin("PUT", "tenants/late", #"{"display_name": "L"}"#).status < 300)
                    #expect(try await dev.emulator.journal().count == ids.count)
                    #expect(try await Program.auditVerify(data).end == .code(0))
                    try await dev.gateway.stopInOrder()
                    return ids
                }
                try await self.check(data, ids, actions: ["audit.recovered": 0])
            }
        }

        @Test("After a kill with spooled records the next start stores each; a changed spool is found")
        func killedWhileSpooling() async throws {
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                let ids = try await self.killedWithASpool(data)
                let unclean = try await Program.auditVerify(data).expect(2)
                #expect(unclean.errors.contains("The spool holds "), "\(unclean.errors)")
                let copy = try directory.copy("data", to: "copy")
                var bytes = try Data(contentsOf: URL(filePath: "\(copy)/audit.spool"))
                bytes[30] ^= 1
                try bytes.write(to: URL(filePath: "\(copy)/audit.spool"))
                let changed = try await Program.auditVerify(copy).expect(1)
                #expect(changed.output.contains("spool"), "\(changed.output)")
                try await self.check(data, ids, actions: ["audit.recovered": 1, "audit.spool_damaged": 0])
            }
        }

        @Test("After a kill while the spool drains each record is stored once")
        func killedWhileCatchingUp() async throws {
            for round in 0..<4 {
                try await PrivateDirectory.with { directory in
                    let data = directory.path("data")
                    let ids = try await DevGateway.with(data) { dev in
                        let ids = try await StoreHold.on(data) { try await self.fillSpool(dev) }
                        // More reads of the metric give the spool more time to drain.
                        for _ in 0..<(round * 8) { _ = try await self.metric(dev, Self.spoolBytes) }
                        try await dev.gateway.kill()
                        return ids
                    }
                    try await self.check(data, ids)
                }
            }
        }

        @Test("After kills during starts that drain the spool each record is stored once")
        func killedWhileStarting() async throws {
            try await PrivateDirectory.with { directory in
                let data = directory.path("data")
                let ids = try await self.killedWithASpool(data)
                let environment = directory.environment([
                    "GATEWAY_MASTER_KEY_FILE": "\(data)/master.key", "GATEWAY_MASTER_KEY": nil,
                ])
                for line in ["", "\"message\":\"An earlier process ended uncleanly", "Serving."] {
                    try await ChildProcess.with(Program.gateway(), ["serve"], environment: environment) { process in
                        if !line.isEmpty {
                            _ = try await process.errors.first { $0.contains(line) ? true : nil }
                        }
                        process.signal(SIGKILL)
                        #expect(try await process.end() == .signal(SIGKILL))
                    }
                }
                try await self.check(data, ids, actions: ["audit.spool_damaged": 0])
            }
        }
    }
}
