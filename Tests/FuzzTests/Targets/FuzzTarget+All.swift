extension FuzzTarget {
    /// Every target, in the order in which they are run.
    static let all = [
        FuzzTarget("strict-json", maxBytes: 2_048, words: Words.json, check: JSONProperties.check),
        FuzzTarget("http-request", maxBytes: 2_048, words: Words.http, check: RequestProperties.check),
        FuzzTarget("http-body", maxBytes: 1_024, words: Words.chunks, check: BodyProperties.check),
        FuzzTarget("http-response", maxBytes: 2_048, words: Words.http, check: ResponseProperties.check),
        FuzzTarget("http2-answer", maxBytes: 1_024, words: Words.http2, check: AnswerFrameProperties.check),
        FuzzTarget("resp", maxBytes: 1_024, words: Words.redis, check: RESPProperties.check),
        FuzzTarget("legacy-form", maxBytes: 4_608, words: Words.form, check: LegacyFormProperties.check),
        FuzzTarget("legacy-json", maxBytes: 4_608, words: Words.legacy, check: LegacyJSONProperties.check),
        FuzzTarget("legacy-response", maxBytes: 2_048, words: Words.answers, check: LegacyAnswerProperties.check),
        FuzzTarget("legacy-text", maxBytes: 2_048, words: Words.answers, check: LegacyAnswerProperties.check),
        FuzzTarget("v1-response", maxBytes: 2_048, words: Words.v1Answers, check: V1AnswerProperties.check),
        FuzzTarget("group-response", maxBytes: 1_024, words: Words.answers, check: GroupAnswerProperties.check),
        FuzzTarget("topic-response", maxBytes: 2_048, words: Words.topicAnswers, check: TopicAnswerProperties.checkV1),
        FuzzTarget(
            "iid-response",
            maxBytes: 2_048,
            words: Words.topicAnswers,
            check: TopicAnswerProperties.checkInstanceID
        ),
        FuzzTarget("token-response", maxBytes: 1_024, words: Words.tokenAnswers, check: TokenAnswerProperties.check),
        FuzzTarget("v1-request", maxBytes: 4_608, words: Words.v1, check: V1Properties.check),
        FuzzTarget("condition", maxBytes: 1_024, words: Words.condition, check: ConditionProperties.check),
        FuzzTarget("trace-context", maxBytes: 640, words: Words.traces, check: TraceContextProperties.check),
        // Read once, and not on an event loop. Most of the time goes into reading every key twice.
        FuzzTarget(
            "configuration",
            maxBytes: 2_048,
            maxTime: .milliseconds(50),
            words: Words.yaml,
            check: ConfigurationProperties.check
        ),
    ]

    static func named(_ name: String) -> FuzzTarget? {
        Self.all.first { $0.name == name }
    }
}
