import EventLoopHTTP
import FCMModel
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

    /// What authorises requests.
    let authorization: Authorization
    /// The way to the Instance ID API.
    let instanceID: HTTPClientPool

    /// The account, where v1's own API can be used.
    var account: V1Account? {
        switch self.authorization {
        case .serverKey: nil
        case .account(let account): account
        }
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
    }
}
