import FCMModel
import GatewayCore
import GatewayTestKit
import Synchronization

/// An FCM that outlives the processes that send to it, and counts the deliveries to each token.
final class SurvivingFCM: Sendable {
    private let deliveries = Mutex<[String: Int]>([:])

    func count(_ token: String) -> Int { self.deliveries.withLock { $0[token] ?? 0 } }

    var total: Int { self.deliveries.withLock { $0.values.reduce(0, +) } }

    /// The upstream of a process that may die before or after each delivery.
    func upstream(of process: MortalProcess) -> ScriptedUpstream.Responder {
        { call in
            let tokens: [String] =
                switch call.target {
                case .tokens(let tokens), .installations(let tokens): tokens
                case .token(let text), .installation(let text), .notificationKey(let text), .deviceGroup(let text):
                    [text]
                case .topic(let topic): [topic.text]
                case .condition: ["condition"]
                }
            guard let gate = call.reservation else {
                // One request for all tokens.
                guard process.step("before delivery") else { return Self.lost(tokens.count) }
                for token in tokens { self.deliver(token) }
                guard process.step("after delivery") else { return Self.lost(tokens.count) }
                return ScriptedUpstream.accepting(call)
            }
            var outcomes: [RecipientOutcome] = []
            for (index, token) in tokens.enumerated() {
                guard await gate.pass(index) else {
                    outcomes.append(.rejected(.overloaded))
                    continue
                }
                guard process.step("before delivery") else {
                    outcomes.append(.rejected(.outcomeUnknown))
                    continue
                }
                self.deliver(token)
                guard process.step("after delivery") else {
                    outcomes.append(.rejected(.outcomeUnknown))
                    continue
                }
                outcomes.append(.accepted(Acceptance(messageID: "id of \(token)")))
                gate.finish(index, .accepted(Acceptance(messageID: "id of \(token)")))
            }
            return SendResult(outcomes, upstreamCode: "200")
        }
    }

    private func deliver(_ token: String) {
        self.deliveries.withLock { $0[token, default: 0] += 1 }
    }

    private static func lost(_ count: Int) -> SendResult {
        SendResult(
            Array(repeating: .rejected(.outcomeUnknown), count: count),
            upstreamCode: "lost"
        )
    }
}
