/// What FCM made of a request to manage a device group.
package struct GroupResult: Sendable, Hashable {
    /// A key of the group, one of many that are valid, or why there is none.
    package var answer: Result<String, GroupFailure>
    /// What FCM said, bounded and free of payload: a status or the name of a failure on the way.
    package var upstreamCode: String

    /// A result.
    package init(_ answer: Result<String, GroupFailure>, upstreamCode: String) {
        self.answer = answer
        self.upstreamCode = upstreamCode
    }

    /// A request that got no answer.
    ///
    /// Nobody knows whether it was carried out; since every change can be repeated, that is all the same.
    package init(transportFailure upstreamCode: String) {
        self.init(.failure(GroupFailure(.upstreamUnavailable)), upstreamCode: upstreamCode)
    }
}
