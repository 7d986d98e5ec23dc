import Foundation
import ProcessTestKit
import Testing

@testable import FCMGateway

extension EndToEnd {
    @Suite("Topics")
    struct TopicTests {
        @Test("A message to a topic reaches exactly those who were subscribed by REST or by a facade")
        func subscribers() async throws {
            try await PrivateDirectory.with { directory in
                try await DevGateway.with(directory.path("data")) { dev in
                    let base = dev.gateway.address
                    let bearer = ["Authorization": "Bearer \(dev.key)", "Content-Type": "application/json"]
                    let topic = "\(base)/v1/tenants/demo/topics/news/subscriptions"
                    let added = try await Reply.to(
                        "POST",
                        topic,
                        headers: bearer,
                        body: #"{"tokens": ["a", "ERROR_NotRegistered", "b", "a"]}"#
                    )
                    #expect(added.status == 200)
                    #expect(added.json["accepted"]?.wholeNumber == 3)
                    let results = added.json["results"]?.elements ?? []
                    #expect(results.map { $0["token"]?.text } == ["a", "ERROR_NotRegistered", "b", "a"])
                    #expect(results.map { $0["code"]?.text } == [nil, "unregistered", nil, nil])

                    let legacy = ["Authorization": "key=\(dev.key)", "Content-Type": "application/json"]
                    let batch = try await Reply.to(
                        "POST",
                        "\(base)/iid/v1:batchAdd",
                        headers: legacy,
                        body: #"{"to": "/topics/news", "registration_tokens": ["c", "d"]}"#
                    )
                    #expect(batch.text == #"{"results":[{},{}]}"#)
                    let v1 = "\(base)/v1/projects/demo/registrations/b/topicSubscriptions"
                    let removed = try await Reply.to("DELETE", "\(v1)/news?allow_missing=true", headers: bearer)
                    #expect(removed.text == "{}")
                    let gone = try await Reply.to(
                        "POST",
                        topic + "/remove",
                        headers: bearer,
                        body: #"{"tokens": ["d"]}"#
                    )
                    #expect(gone.status == 200)

                    let sent = try await dev.send(#"{"topic": "news", "data": {"k": "v"}}"#)
                    #expect(sent.status == 200)
                    let deliveries = try await Reply.to(
                        "GET",
                        "\(dev.emulator.address)/_emulator/deliveries?topic=news"
                    )
                    #expect(
                        (deliveries.json["deliveries"]?.elements ?? []).compactMap { $0["token"]?.text }.sorted() == [
                            "a", "c",
                        ]
                    )

                    let listed = try await Reply.to(
                        "GET",
                        "\(base)/v1/tenants/demo/subscriptions?token=a",
                        headers: bearer
                    )
                    #expect((listed.json["topics"]?.elements ?? []).map { $0["topic"]?.text } == ["news"])
                    // A record appears a moment after the answer.
                    let records = try await eventually {
                        let records = try await dev.gateway.audit("&action=topic.subscribe")
                        return records.count >= 2 ? records : nil
                    }
                    #expect(records.count == 2)
                    #expect(records.allSatisfy { $0["tenant"]?.text == "demo" })
                    #expect(
                        try await dev.gateway.metrics()
                            .contains(
                                #"fcmgw_subscription_changes_total{change="subscribe",outcome="accepted",tenant="demo"} 5"#
                            )
                    )
                }
            }
        }

        @Test("The configured address of the Instance ID API counts where a credential names no other")
        func endpoint() async throws {
            try await Emulator.with { emulator in
                try await PrivateDirectory.with { directory in
                    var environment = RunningGateway.environment(dataDirectory: directory.path("data"))
                    environment["GATEWAY_UPSTREAM_IID_ENDPOINT"] = emulator.address
                    try await RunningGateway.serving(environment) { gateway in
                        _ = try await gateway.admin(
                            "PUT",
                            "tenants/demo",
                            #"{"display_name": "Demo", "upstream": "legacy"}"#
                        )
                        _ = try await gateway.admin(
                            "PUT",
                            "tenants/demo/credentials/legacy",
                            #"{"server_key": "the-server-key"}"#
                        )
                        let made = try await gateway.admin(
                            "POST",
                            "tenants/demo/keys",
                            #"{"name": "test", "scopes": ["topics:manage"]}"#
                        )
                        let key = try #require(made.json["key"]?.text)
                        let reply = try await Reply.to(
                            "POST",
                            "\(gateway.address)/v1/tenants/demo/topics/news/subscriptions",
                            headers: ["Authorization": "Bearer \(key)", "Content-Type": "application/json"],
                            body: #"{"tokens": ["a"]}"#
                        )
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
