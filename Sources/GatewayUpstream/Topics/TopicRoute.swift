import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// By what a tenant's subscriptions are kept: where its requests go, and what authorises them.
struct TopicRoute: Sendable {
    /// What authorises requests.
    enum Authorization: Sendable {
        /// The fields of every request, the server key among them.
        case serverKey(HTTPHeaderLines)
        /// The tenant's account by the v1 protocol, whose access tokens serve both APIs.
        case account(V1Account)
    }

    /// Whose requests.
    let profile: TenantProfile
    /// What authorises them.
    let authorization: Authorization
    /// The way to the Instance ID API.
    let instanceID: HTTPClientPool
    /// The caller's request behind them.
    let origin: RequestOrigin

    /// The account, where v1's own API can be used.
    var account: V1Account? {
        switch self.authorization {
        case .serverKey: nil
        case .account(let account): account
        }
    }

    /// Where a request goes, and for whom.
    func subject(at server: HTTPOrigin) -> AttemptRecorder.Subject {
        AttemptRecorder.Subject(server: server, profile: self.profile, origin: self.origin)
    }
}

extension HTTPClientRequest {
    /// A request about subscriptions with the fields that authorise it.
    init(_ request: TopicRequest, headers: HTTPHeaderLines) {
        let method: HTTPRequest.Method =
            switch request.method {
            case .get: .get
            case .post: .post
            case .delete: .delete
            }
        self.init(method: method, path: request.path, headers: headers, body: request.body)
        self.maxResponseBodyBytes = request.maxAnswerBytes
    }
}
