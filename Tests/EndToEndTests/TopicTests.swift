import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Topics")
    struct TopicTests {
        @Test("A message to a topic reaches exactly those who were subscribed by REST or by a facade")
        func subscribers() async throws {
            try await DevGateway.with { dev in
                func ask(_ method: String, _ path: String, _ body: String? = nil) async throws -> Reply {
                    try await dev.gateway.ask(method, path, key: dev.key, body)
                }
                let topic = "/v1/tenants/demo/topics/news/subscriptions"
                let added = try await ask("POST", topic, #"{"tokens": ["a", "ERROR_NotRegistered", "b", "a"]}"#)
                #expect(added.status == 200)
                #expect(added.json["accepted"]?.wholeNumber == 3)
                let results = added.json["results"]?.elements ?? []
                #expect(results.map { $0["token"]?.text } == ["a", "ERROR_NotRegistered", "b", "a"])
                #expect(results.map { $0["code"]?.text } == [nil, "unregistered", nil, nil])

                let both = #"{"to": "/topics/news", "registration_tokens": ["c", "d"]}"#
                #expect(try await ask("POST", "/iid/v1:batchAdd", both).text == #"{"results":[{},{}]}"#)
                let v1 = "/v1/projects/demo/registrations/b/topicSubscriptions"
                #expect(try await ask("DELETE", "\(v1)/news?allow_missing=true").text == "{}")
                #expect(try await ask("POST", topic + "/remove", #"{"tokens": ["d"]}"#).status == 200)

                #expect(try await dev.send(#"{"topic": "news", "data": {"k": "v"}}"#).status == 200)
                let journal = "\(dev.emulator.address)/_emulator/deliveries?topic=news"
                let deliveries = try await Reply.to("GET", journal).json["deliveries"]?.elements ?? []
                #expect(deliveries.compactMap { $0["token"]?.text }.sorted() == ["a", "c"])

                let listed = try await ask("GET", "/v1/tenants/demo/subscriptions?token=a")
                #expect((listed.json["topics"]?.elements ?? []).map { $0["topic"]?.text } == ["news"])
                // A record appears a moment after the answer.
                let records = try await eventually {
                    let records = try await dev.gateway.audit("&action=topic.subscribe")
                    return records.count >= 2 ? records : nil
                }
                #expect(records.count == 2)
                #expect(records.allSatisfy { $0["tenant"]?.text == "demo" })
                let labels = #"{change="subscribe",outcome="accepted",tenant="demo"}"#
                #expect(try await dev.gateway.metric("fcmgw_subscription_changes_total\(labels)") == "5")
            }
        }

        @Test("The configured address of the Instance ID API counts where a credential names no other")
        func endpoint() async throws {
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    let environment = directory.environment(["GATEWAY_UPSTREAM_IID_ENDPOINT": emulator.address])
                    try await RunningGateway.serving(environment) { gateway in
                        _ = try await gateway.set("demo", upstream: "legacy")
                        let credential = #"{"server_key": "the-server-key"}"#
                        _ = try await gateway.admin("PUT", "tenants/demo/credentials/legacy", credential)
                        let key = try await gateway.makeKey("demo", ["topics:manage"])
                        let topic = "/v1/tenants/demo/topics/news/subscriptions"
                        let reply = try await gateway.ask("POST", topic, key: key, #"{"tokens": ["a"]}"#)
                        #expect(reply.status == 200, "\(reply.text)")
                        let entry = try #require(await emulator.journal().first)
                        #expect(entry["path"]?.text == "/iid/v1:batchAdd")
                        #expect(entry.headers("authorization") == ["key=the-server-key"])
                    }
                }
            }
        }
    }
}
