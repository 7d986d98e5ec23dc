package import FCMModel

/// A checked message on its way into the pipeline.
///
/// A class, since it is handed on many times and copying its parts each time would cost more than the pipeline itself.
package final class SendCommand: Sendable {
    /// Who sends.
    package let principal: Principal
    /// Whom it is for; for a device group that was named, its name stands in place of the key that is not known yet.
    package let target: Target
    /// Whether the one token that it is for may be the key of a device group: FCM's own protocols take either in one place.
    let tokenMayBeGroup: Bool
    /// The name of the device group that it is for, where the caller named one.
    package let groupName: String?
    /// What it says.
    package let message: Message
    /// The payload's size in bytes.
    package let payloadBytes: Int
    /// The request it came with.
    package let origin: RequestOrigin
    /// When the caller stops waiting.
    package let deadline: ContinuousClock.Instant

    /// A command for a target in FCM's own terms.
    package convenience init(
        principal: Principal,
        target: Target,
        tokenMayBeGroup: Bool = false,
        message: Message,
        payloadBytes: Int,
        origin: RequestOrigin,
        deadline: ContinuousClock.Instant
    ) {
        self.init(
            principal: principal,
            target: target,
            tokenMayBeGroup: tokenMayBeGroup,
            groupName: nil,
            message: message,
            payloadBytes: payloadBytes,
            origin: origin,
            deadline: deadline
        )
    }

    /// A command for a device group by the tenant's name for it; its key is found on the way.
    package convenience init(
        principal: Principal,
        groupName: String,
        message: Message,
        payloadBytes: Int,
        origin: RequestOrigin,
        deadline: ContinuousClock.Instant
    ) {
        self.init(
            principal: principal,
            target: .notificationKey(groupName),
            tokenMayBeGroup: false,
            groupName: groupName,
            message: message,
            payloadBytes: payloadBytes,
            origin: origin,
            deadline: deadline
        )
    }

    private init(
        principal: Principal,
        target: Target,
        tokenMayBeGroup: Bool,
        groupName: String?,
        message: Message,
        payloadBytes: Int,
        origin: RequestOrigin,
        deadline: ContinuousClock.Instant
    ) {
        self.principal = principal
        self.target = target
        self.tokenMayBeGroup = tokenMayBeGroup
        self.groupName = groupName
        self.message = message
        self.payloadBytes = payloadBytes
        self.origin = origin
        self.deadline = deadline
    }

    /// The same message to some of its recipients.
    func addressing(_ target: Target) -> SendCommand {
        SendCommand(
            principal: self.principal,
            target: target,
            tokenMayBeGroup: self.tokenMayBeGroup,
            message: self.message,
            payloadBytes: self.payloadBytes,
            origin: self.origin,
            deadline: self.deadline
        )
    }
}
