import EventLoopHTTP
import FCMModel
import HTTPTypes

@testable import GatewayCore
@testable import GatewayHTTP

/// Properties of every answer of `/fcm/notification`.
enum GroupAnswerProperties {
    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard let answer = AnswerInput(input), let principal = SendConsequences.principal else { return }
        let result = GroupResponseReader.read(answer.legacy, now: AnswerInput.now)
        switch result.answer {
        case .success(let key):
            try FuzzFinding.requireEqual(answer.status, 200, "a key with status")
            try FuzzFinding.require(AnswerBounds.isToken(key), "a key that is none")
        case .failure(let failure):
            try SendConsequences.checkDelay(failure.retryAfter)
            try FuzzFinding.require((failure.text ?? "").utf8.count <= 800, "a long text")
            let rest = Refusal(failure).response
            try SendConsequences.checkJSON(rest.body, status: rest.status.code)
        }
        let reply = GroupReplyWriter.reply(to: result)
        try SendConsequences.checkDelay(reply.retryAfter)
        try SendConsequences.checkJSON(reply.body, status: reply.status)
        var record = AuditRecord.group(
            .deviceGroupPut,
            "name",
            tokens: ["a", "b"],
            by: Caller(principal: principal, origin: SendConsequences.origin, deadline: .now),
            at: SendConsequences.time
        )
        record.note(result)
        try SendConsequences.check(record)
    }
}
