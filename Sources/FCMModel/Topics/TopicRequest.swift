package import NIOCore

/// A request about subscriptions, but for where it goes and what authorises it.
package struct TopicRequest: Sendable, Hashable {
    /// The methods that such requests have.
    package enum Method: Sendable, Hashable {
        case get
        case post
        case delete
    }

    /// The method.
    package let method: Method
    /// Path and query.
    package let path: String
    /// The template of the path, for whoever must not learn the device.
    package let template: String
    /// The body; empty where there is none.
    package let body: ByteBuffer
    /// How long an answer may be, in bytes; the default lists all subscriptions that a device may have.
    package let maxAnswerBytes: Int

    init(
        _ method: Method,
        _ path: String,
        of template: String,
        body: ByteBuffer = ByteBuffer(),
        maxAnswerBytes: Int = 1024 * 1024
    ) {
        self.method = method
        self.path = path
        self.template = template
        self.body = body
        self.maxAnswerBytes = maxAnswerBytes
    }
}
