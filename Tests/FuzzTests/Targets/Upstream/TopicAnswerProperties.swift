import EventLoopHTTP
import FCMModel
import HTTPTypes

@testable import GatewayCore
@testable import GatewayHTTP

/// Properties of every answer of the two APIs for subscriptions.
enum TopicAnswerProperties {
    private static let tokens = ["a", "b", "c"]

    /// Checks an answer of v1's topic subscriptions.
    static func checkV1(_ input: [UInt8]) throws(FuzzFinding) {
        guard let answer = AnswerInput(input) else { return }
        let reading =
            switch answer.choice % 3 {
            case 0: V1TopicResponseReader.list(answer.v1, now: AnswerInput.now)
            case 1: V1TopicResponseReader.change(answer.v1, .subscribe, now: AnswerInput.now)
            default: V1TopicResponseReader.change(answer.v1, .unsubscribe, now: AnswerInput.now)
            }
        try Self.check(reading, answer, devices: 1, death: "unregistered")
    }

    /// Checks an answer of the Instance ID API.
    static func checkInstanceID(_ input: [UInt8]) throws(FuzzFinding) {
        guard let answer = AnswerInput(input) else { return }
        let isBatch = answer.choice.isMultiple(of: 2)
        let reading =
            isBatch
            ? InstanceIDResponseReader.batch(answer.v1, count: Self.tokens.count, now: AnswerInput.now)
            : InstanceIDResponseReader.info(answer.v1, now: AnswerInput.now)
        // The API reports an unknown device by a 404 with a text.
        try Self.check(reading, answer, devices: isBatch ? Self.tokens.count : 1, death: isBatch ? "notfound" : "error")
    }

    private static func check(
        _ reading: TopicReading,
        _ answer: AnswerInput,
        devices: Int,
        death: String
    ) throws(FuzzFinding) {
        switch reading.answer {
        case .changed(let outcomes):
            try FuzzFinding.requireEqual(outcomes.count, devices, "outcomes for others")
            try Self.check(outcomes, reading, answer, death: death)
        case .rejected(let rejection):
            let outcomes = Array(repeating: SubscriptionOutcome.rejected(rejection), count: devices)
            try Self.check(outcomes, reading, answer, death: death)
            let reply = V1ReplyWriter.reply(refusingSubscription: rejection)
            try SendConsequences.checkJSON(reply.body, status: reply.status)
        case .registration(let info, let nextPage):
            try FuzzFinding.require(nextPage.map(AnswerBounds.isToken) ?? true, "a page that can't be asked for")
            let rest = Subscriptions.Answer.response(ChargedAnswer(.success(info)), after: nil, limit: 10)
            try SendConsequences.checkJSON(rest.body, status: rest.status.code)
            let v1 = V1ReplyWriter(project: "p")
                .reply(listing: info.subscriptions, of: "a", nextPage: nextPage)
            try SendConsequences.checkJSON(v1.body, status: v1.status)
            // Topics are members of an object here; a topic that v1 lists twice is never written in this form.
            if Set(info.subscriptions.map(\.topic)).count == info.subscriptions.count {
                let reply = InstanceIDReplyWriter.reply(with: info, includingTopics: true)
                try SendConsequences.checkJSON(reply.body, status: reply.status)
            }
        }
    }

    private static func check(
        _ outcomes: [SubscriptionOutcome],
        _ reading: TopicReading,
        _ answer: AnswerInput,
        death: String
    ) throws(FuzzFinding) {
        guard let principal = SendConsequences.principal, let topic = TopicName("t") else { return }
        for case .rejected(let rejection) in outcomes {
            try SendConsequences.checkDelay(rejection.retryAfter)
            if rejection.code == .unregistered {
                try FuzzFinding.require(answer.says(death), "a token is dead that nobody called so")
            }
        }
        let tokens = Array(Self.tokens.prefix(outcomes.count))
        let caller = Caller(principal: principal, origin: SendConsequences.origin, deadline: .now)
        let call = SubscriptionCall(.subscribe, of: tokens, to: topic, by: caller)
        var record = AuditRecord(call, at: SendConsequences.time)
        record.upstreamCode = reading.upstreamCode
        record.note(outcomes)
        try SendConsequences.check(record)
        let rest = Subscriptions.Answer.response(to: call, ChargedAnswer(.success(outcomes)))
        try SendConsequences.checkJSON(rest.body, status: rest.status.code)
        let reply = InstanceIDReplyWriter.reply(to: outcomes)
        try SendConsequences.checkDelay(reply.retryAfter)
        try SendConsequences.checkJSON(reply.body, status: reply.status)
    }
}
