import GatewayTestKit
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("kill -9 during load")
    struct SuddenDeathTests {
        private static let senders = 6
        private static let answersBeforeDeath = 300
        private static let rounds = 3

        /// A message that was answered as accepted.
        private struct Answer {
            let messageID: String
            let sender: Int
        }

        private typealias AnswerLog = Observed<[Answer]>

        @Test("After kill -9 under load the audit is unclean until the next start and lacks only the newest records")
        func death() async throws {
            try await PrivateDirectory.with(prefersMemory: true) { directory in
                let data = directory.path("data")
                for round in 1...Self.rounds {
                    let log = AnswerLog([])
                    try await DevGateway.with(data) { dev in
                        try await self.kill(dev, under: log)
                    }
                    let unclean = try await Program.auditVerify(data).expect(2)
                    // Each round has three writers: one for each start.
                    #expect(unclean.output.contains("writer \(round * 3 - 2) ended uncleanly"), "\(unclean.output)")

                    try await DevGateway.with(data) { dev in
                        try await Program.auditVerify(data).expect(0)
                        try await self.checkKept(log.current, in: dev)
                    }
                    // This gateway was killed too, while idle.
                    #expect(try await Program.auditVerify(data).end == .code(2))
                    try await DevGateway.with(data) { dev in
                        #expect(try await dev.gateway.audit("&action=audit.recovered").count == round * 2)
                        try await dev.gateway.stopInOrder()
                    }
                    #expect(try await Program.auditVerify(data).end == .code(0))
                }
            }
        }

        /// Sends from several callers and kills the gateway meanwhile.
        private func kill(_ dev: DevGateway, under log: AnswerLog) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for sender in 1...Self.senders {
                    group.addTask {
                        var number = 0
                        // Ends when the gateway's death closes the connection.
                        while let reply = try? await dev.send(#"{"token": "device-\#(sender)-\#(number)"}"#) {
                            #expect(reply.status == 200, "\(reply.text)")
                            guard let messageID = reply.json["id"]?.text else { return }
                            log.change { $0.append(Answer(messageID: messageID, sender: sender)) }
                            number += 1
                        }
                    }
                }
                try await log.wait { $0.count >= Self.answersBeforeDeath }
                // Waits until the records of the load's first half are on disk.
                let middle = try #require(log.current.dropFirst(Self.answersBeforeDeath / 2).first?.messageID)
                try await wait { try await !dev.gateway.audit("&message=\(middle)").isEmpty }
                try await dev.gateway.kill()
                try await group.waitForAll()
            }
        }

        private func checkKept(_ answers: [Answer], in dev: DevGateway) async throws {
            let records = try await dev.gateway.audit("&action=message.send")
            let kept = Set(records.compactMap { $0["message"]?.text })
            let lost = answers.filter { !kept.contains($0.messageID) }
            // A sender waits for each answer, so its lost records follow its kept ones.
            for sender in 1...Self.senders {
                let isKept = answers.filter { $0.sender == sender }.map { kept.contains($0.messageID) }
                #expect(isKept == isKept.sorted { $0 && !$1 }, "\(lost.count) of \(answers.count) are lost")
            }
            // Records from well before the kill are never lost.
            #expect(answers.prefix(Self.answersBeforeDeath / 2).allSatisfy { kept.contains($0.messageID) })
            // A look-up by message agrees with the list.
            let oldest = try #require(answers.first?.messageID)
            #expect(try await dev.gateway.audit("&message=\(oldest)").count == 1)
            if let newest = lost.last?.messageID {
                #expect(try await dev.gateway.audit("&message=\(newest)").isEmpty)
            }
        }
    }
}
