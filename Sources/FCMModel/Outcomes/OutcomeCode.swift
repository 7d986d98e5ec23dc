/// The outcome of a request or of one recipient, in the words of the REST contract (docs/api-guide.md).
///
/// The raw value is the `code` member of a problem and of a result. It is stable and contains nothing secret. The table
/// below has one row for each code, with all of the code's other properties. A new code needs a case and a row.
package enum OutcomeCode: String, Sendable, Hashable, CaseIterable {
    /// Advice to the receiver of a refusal.
    package enum CallerAction: String, Sendable, Hashable {
        case fixRequest = "fix_request"
        case shrinkPayload = "shrink_payload"
        case deleteToken = "delete_token"
        case useMatchingSender = "use_matching_sender"
        case fixCredentials = "fix_credentials"
        case requestScope = "request_scope"
        case wait
        case callOperator = "call_operator"
    }

    // The body as text.
    case malformedJSON = "malformed_json"
    case duplicateKey = "duplicate_key"
    case tooDeep = "too_deep"
    case tooManyMembers = "too_many_members"

    // The message.
    case invalidField = "invalid_field"
    case unknownField = "unknown_field"
    case invalidTarget = "invalid_target"
    case invalidDataKey = "invalid_data_key"
    case messageTooBig = "message_too_big"

    // The recipient.
    case invalidToken = "invalid_token"
    case unregistered
    case senderMismatch = "sender_mismatch"
    case packageMismatch = "package_mismatch"

    // The caller.
    case unauthenticated
    case forbidden
    case notFound = "not_found"
    case conflict
    case preconditionFailed = "precondition_failed"

    // HTTP itself.
    case methodNotAllowed = "method_not_allowed"
    case headerTooLarge = "header_too_large"
    case uriTooLong = "uri_too_long"
    case badRequest = "bad_request"
    case bodyTooLarge = "body_too_large"
    case unsupportedMediaType = "unsupported_media_type"
    case requestTimeout = "request_timeout"

    // Topics and device groups.
    case tooManyTopics = "too_many_topics"
    case groupTooLarge = "group_too_large"
    case noValidTokens = "no_valid_tokens"
    case groupConflict = "group_conflict"

    // Idempotency.
    case idempotencyConflict = "idempotency_conflict"
    case idempotencyInProgress = "idempotency_in_progress"

    // Batches.
    case batchState = "batch_state"
    case partConflict = "part_conflict"
    case batchIncomplete = "batch_incomplete"
    case batchTooLarge = "batch_too_large"
    case batchQuotaExceeded = "batch_quota_exceeded"

    // Quotas.
    case tenantRateExceeded = "tenant_rate_exceeded"
    case deviceRateExceeded = "device_rate_exceeded"
    case topicRateExceeded = "topic_rate_exceeded"

    // Upstream and the gateway itself.
    case upstreamCredentials = "upstream_credentials"
    case upstreamProtocol = "upstream_protocol"
    case upstreamUnavailable = "upstream_unavailable"
    case upstreamInternal = "upstream_internal"
    case overloaded
    case outcomeUnknown = "outcome_unknown"
    case auditUnavailable = "audit_unavailable"
    case internalError = "internal_error"
}

extension OutcomeCode {
    /// The condition under which the unchanged request may succeed.
    enum Retry {
        /// The request can't succeed, or it may have succeeded already.
        case never
        /// After an operator's repair. FCM accepted nothing, so the idempotency key is free again.
        case onceMended
        /// After a delay. FCM accepted nothing, so the idempotency key is free again.
        case later
    }

    /// The scope of a cause. If all recipients of a list failed for a shared cause, the call failed as a whole.
    enum Cause {
        /// The cause concerns one recipient.
        case recipient
        /// All devices of a call that changes subscriptions share the cause. For a message, each recipient has its own
        /// cause.
        case subscriptions
        /// The whole call shares the cause: the path to FCM, or the tenant's credential.
        case call
    }

    package var status: Int { self.row.columns.status }
    package var action: CallerAction? { self.row.columns.action }
    package var isRetryable: Bool { self.row.columns.retry == .later }
    /// True if FCM accepted nothing, and time or an operator removes the cause. A retry under the same idempotency key
    /// then sends the message.
    package var freesKey: Bool { self.row.columns.retry != .never }
    package var isShared: Bool { self.row.columns.cause == .call }
    package var isSharedBySubscriptions: Bool { self.row.columns.cause != .recipient }
    /// The legacy protocol's name (T9).
    ///
    /// The protocol has few names. A cause that callers can repair becomes `InvalidParameters`. A cause that passes
    /// with time becomes `Unavailable`. A cause that only operators can repair becomes `InternalServerError`, so that
    /// no client deletes a token or changes a key because of it (TB-OWNAUTH).
    ///
    /// An exhausted quota of the tenant becomes `Unavailable`, because it concerns neither a device nor a topic.
    package var legacyErrorName: LegacyErrorName { self.row.columns.legacy }
    /// The Instance ID API's name. A cause that only operators can repair becomes `INTERNAL`.
    package var instanceIDErrorName: RPCStatus { self.row.columns.instanceID }
    var v1Error: V1Error { self.row.columns.v1 }
    /// A problem's title, with the same words for every occurrence (RFC 9457, 3.1.3).
    package var title: String { self.row.title }
    package var explanation: String { self.row.advice }
}

// MARK: The table

extension OutcomeCode {
    private struct Row {
        let columns: Columns
        let title: String
        let advice: String
    }

    private struct TitledColumns {
        let columns: Columns
        let title: String

        func advice(_ text: String) -> Row { Row(columns: self.columns, title: self.title, advice: text) }
    }

    private struct Columns {
        let status: Int
        let action: CallerAction?
        let retry: Retry
        let cause: Cause
        let legacy: LegacyErrorName
        let instanceID: RPCStatus
        let v1: V1Error

        init(
            _ status: Int,
            _ action: CallerAction?,
            _ retry: Retry,
            _ cause: Cause,
            _ legacy: LegacyErrorName,
            _ instanceID: RPCStatus,
            _ v1: V1Error
        ) {
            self.status = status
            self.action = action
            self.retry = retry
            self.cause = cause
            self.legacy = legacy
            self.instanceID = instanceID
            self.v1 = v1
        }

        func title(_ text: String) -> TitledColumns { TitledColumns(columns: self, title: text) }
    }

    /// The columns: status, action, retry, cause, legacy name, Instance ID name, v1 error.
    private var row: Row {
        switch self {
        // The body as text.
        case .malformedJSON:
            Columns(400, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The body is not valid JSON")
                .advice("Send one JSON object, in UTF-8")
        case .duplicateKey:
            Columns(400, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The body names one member twice")
                .advice("Name each member of an object once")
        case .tooDeep:
            Columns(400, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The body is nested too deeply")
                .advice("Nest objects and arrays less deeply")
        case .tooManyMembers:
            Columns(400, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The body has too many members")
                .advice("Send fewer members")
        // The message.
        case .invalidField:
            Columns(422, .fixRequest, .never, .subscriptions, .invalidParameters, .invalidArgument, .invalidArgument)
                .title("A field has a value that is not allowed")
                .advice("Correct the field's value")
        case .unknownField:
            Columns(422, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .invalidArgument)
                .title("The body has a field that is not known")
                .advice("Leave the field out, or correct its name")
        case .invalidTarget:
            Columns(422, .fixRequest, .never, .recipient, .missingRegistration, .invalidArgument, .invalidArgument)
                .title("The message has no valid target")
                .advice("Name one target, in the form of its kind")
        case .invalidDataKey:
            Columns(422, .fixRequest, .never, .recipient, .invalidDataKey, .invalidArgument, .invalidArgument)
                .title("A data key is reserved")
                .advice("Rename the data key: FCM reserves it")
        case .messageTooBig:
            Columns(422, .shrinkPayload, .never, .recipient, .messageTooBig, .invalidArgument, .invalidArgument)
                .title("The message's payload is too big")
                .advice("Send less in notification and data")
        // The recipient.
        case .invalidToken:
            Columns(422, .fixRequest, .never, .recipient, .invalidRegistration, .invalidArgument, .invalidArgument)
                .title("The registration token is malformed")
                .advice("Send the token exactly as the device reported it; do not delete it for this alone")
        case .unregistered:
            Columns(410, .deleteToken, .never, .recipient, .notRegistered, .notFound, .notFound)
                .title("The device is no longer registered")
                .advice("The app was removed from the device or got a new token; delete this one")
        case .senderMismatch:
            Columns(422, .useMatchingSender, .never, .recipient, .mismatchSenderID, .permissionDenied, .senderMismatch)
                .title("The device is registered with another sender")
                .advice("Send with the credentials of the sender that the device registered with")
        case .packageMismatch:
            Columns(422, .fixRequest, .never, .recipient, .invalidPackageName, .invalidArgument, .invalidArgument)
                .title("The device's app is another package")
                .advice("Correct restricted_package_name, or leave it out")
        // The caller.
        case .unauthenticated:
            Columns(401, .fixCredentials, .never, .recipient, .invalidParameters, .unauthenticated, .unauthenticated)
                .title("The credentials are missing or not valid")
                .advice("Send valid credentials in Authorization")
        case .forbidden:
            Columns(
                403,
                .requestScope,
                .onceMended,
                .recipient,
                .invalidParameters,
                .unauthenticated,
                .permissionDenied
            )
            .title("The credentials do not allow this")
            .advice("Ask an operator for credentials that allow this")
        case .notFound:
            Columns(404, .fixRequest, .onceMended, .recipient, .invalidParameters, .invalidArgument, .permissionDenied)
                .title("There is nothing at this address")
                .advice("Check the address")
        case .conflict:
            Columns(409, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The present state does not allow this")
                .advice("Read the current state and decide again")
        case .preconditionFailed:
            Columns(412, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The resource has changed since it was read")
                .advice("Read the resource again, and repeat the change with its new ETag")
        // HTTP itself.
        case .methodNotAllowed:
            Columns(405, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The method is not allowed here")
                .advice("Use a method that Allow names")
        case .headerTooLarge:
            Columns(431, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The request's header is too large")
                .advice("Send fewer or shorter header fields")
        case .uriTooLong:
            Columns(414, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The request's address is too long")
                .advice("Send a shorter address")
        case .badRequest:
            Columns(400, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The request is malformed")
                .advice("Correct the request")
        case .bodyTooLarge:
            Columns(413, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The request's body is too large")
                .advice("Send a smaller body")
        case .unsupportedMediaType:
            Columns(415, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The body's media type is not supported")
                .advice("Send the body as application/json")
        case .requestTimeout:
            Columns(408, .wait, .later, .recipient, .unavailable, .unavailable, .unavailable)
                .title("The request did not arrive in time")
                .advice("Send the whole request without a long pause")
        // Topics and device groups.
        case .tooManyTopics:
            Columns(422, .fixRequest, .never, .recipient, .invalidParameters, .tooManyTopics, .tooManyTopics)
                .title("The device is subscribed to too many topics")
                .advice("Unsubscribe the device from other topics first: FCM allows 2,000 for each device")
        case .groupTooLarge:
            Columns(422, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("The device group would be too large")
                .advice("A device group holds at most 20 tokens")
        case .noValidTokens:
            Columns(422, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .badRequest)
                .title("None of the tokens is valid")
                .advice("Check the tokens")
        case .groupConflict:
            Columns(409, .wait, .later, .recipient, .unavailable, .unavailable, .aborted)
                .title("The device group is being changed")
                .advice("Repeat when the other change is done")
        // Idempotency.
        case .idempotencyConflict:
            Columns(422, nil, .never, .recipient, .invalidParameters, .invalidArgument, .invalidArgument)
                .title("The idempotency key was used for another request")
                .advice("Use a new idempotency key for a new request")
        case .idempotencyInProgress:
            Columns(409, nil, .later, .recipient, .unavailable, .unavailable, .aborted)
                .title("The first request with this idempotency key is still running")
                .advice("Repeat when the first request is done")
        // Batches.
        case .batchState:
            Columns(409, nil, .never, .recipient, .invalidParameters, .aborted, .invalidArgument)
                .title("The batch is in another state")
                .advice("Read the batch; its state does not allow this change")
        case .partConflict:
            Columns(409, .fixRequest, .never, .recipient, .invalidParameters, .aborted, .invalidArgument)
                .title("The part was uploaded with other recipients")
                .advice("Give each part of a batch a number of its own")
        case .batchIncomplete:
            Columns(409, .fixRequest, .never, .recipient, .invalidParameters, .aborted, .invalidArgument)
                .title("The batch has other parts or recipients than named")
                .advice("Upload the missing parts, then start the batch again")
        case .batchTooLarge:
            Columns(422, .fixRequest, .never, .recipient, .invalidParameters, .invalidArgument, .invalidArgument)
                .title("The list of recipients is too long")
                .advice("Open the batch, and upload the recipients in parts")
        case .batchQuotaExceeded:
            Columns(429, .wait, .later, .recipient, .unavailable, .resourceExhausted, .quota)
                .title("The tenant has too much waiting")
                .advice("Wait until earlier batches or messages are finished, or cancel one")
        // Quotas.
        case .tenantRateExceeded:
            Columns(429, .wait, .later, .subscriptions, .unavailable, .resourceExhausted, .quota)
                .title("The tenant sends too fast")
                .advice("The tenant's quota is used up; wait before the next message")
        case .deviceRateExceeded:
            Columns(429, .wait, .later, .recipient, .deviceMessageRateExceeded, .resourceExhausted, .quota)
                .title("The device receives too many messages")
                .advice("The device's quota is used up; wait before the next message to it")
        case .topicRateExceeded:
            Columns(429, .wait, .later, .recipient, .topicsMessageRateExceeded, .resourceExhausted, .quota)
                .title("The topic receives too many messages")
                .advice("The topic's quota is used up; wait before the next message to it")
        // Upstream and the gateway itself.
        case .upstreamCredentials:
            Columns(502, .callOperator, .onceMended, .call, .internalServerError, .internal, .internal)
                .title("The tenant's credentials for FCM are missing or refused")
                .advice("FCM refuses the tenant's credentials; an operator must check them")
        case .upstreamProtocol:
            Columns(502, .callOperator, .never, .call, .internalServerError, .internal, .internal)
                .title("FCM's answer can't be understood")
                .advice("An operator must check the endpoint that the tenant's messages go to")
        case .upstreamUnavailable:
            Columns(503, .wait, .later, .call, .unavailable, .unavailable, .unavailable)
                .title("FCM can't be reached or is overloaded")
                .advice("Repeat after a while")
        case .upstreamInternal:
            Columns(502, .wait, .later, .call, .internalServerError, .internal, .internal)
                .title("FCM failed")
                .advice("FCM reported an error of its own; repeat after a while")
        case .overloaded:
            Columns(503, .wait, .later, .subscriptions, .unavailable, .unavailable, .unavailable)
                .title("The gateway is overloaded")
                .advice("Repeat after a while")
        case .outcomeUnknown:
            Columns(504, nil, .never, .recipient, .internalServerError, .deadlineExceeded, .deadlineExceeded)
                .title("It is not known whether this was done")
                .advice("The message may have been delivered; repeating it may deliver it twice")
        case .auditUnavailable:
            Columns(503, .wait, .later, .recipient, .unavailable, .unavailable, .unavailable)
                .title("The audit log can't be written, so nothing was done")
                .advice("Nothing is done that can't be recorded; repeat after a while")
        case .internalError:
            Columns(500, .callOperator, .never, .recipient, .internalServerError, .internal, .internal)
                .title("The gateway failed")
                .advice("An operator must check the log")
        }
    }
}
